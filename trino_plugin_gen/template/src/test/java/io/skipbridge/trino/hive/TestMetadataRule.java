package io.skipbridge.trino.hive;

import io.trino.spi.connector.ConnectorMetadata;
import io.trino.spi.connector.ConnectorTableHandle;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import static org.junit.jupiter.api.Assertions.assertEquals;

class TestMetadataRule
{
    /** These end a write; the tables that were read are told to Hive, which does not look at them. */
    private static final Set<String> TOLD = Set.of("finishInsert", "finishMerge");

    @Test
    void testEveryMethodHasARule()
    {
        Set<String> without = methods().map(Method::getName).filter(name -> MetadataRule.of(name).isEmpty()).collect(Collectors.toCollection(TreeSet::new));
        assertEquals(Set.of(), without, "decide what becomes of these, and write it down in MetadataRule");
    }

    @Test
    void testOwnMethodsAreThereInAllTheirForms()
    {
        for (Method method : methods().toList()) {
            boolean own = MetadataRule.of(method.getName()).equals(Optional.of(MetadataRule.OWN));
            assertEquals(own, BothMetadata.has(method), method.toString());
        }
    }

    /** A native handle in the hands of Hive's metadata would be a ClassCastException, or worse. */
    @Test
    void testNoHandleOfATableGoesToHiveAsItIs()
    {
        for (Method method : methods().filter(method -> !TOLD.contains(method.getName())).toList()) {
            boolean takesHandle = Arrays.stream(method.getGenericParameterTypes()).anyMatch(TestMetadataRule::handle);
            Optional<MetadataRule> rule = MetadataRule.of(method.getName());
            if (takesHandle) {
                assertEquals(false, rule.equals(Optional.of(MetadataRule.HIVE)) || rule.equals(Optional.of(MetadataRule.CHANGE_BY_NAME)), method.toString());
            }
        }
    }

    private static boolean handle(java.lang.reflect.Type type)
    {
        return type == ConnectorTableHandle.class || (type instanceof ParameterizedType generic && Arrays.stream(generic.getActualTypeArguments()).anyMatch(TestMetadataRule::handle));
    }

    private static java.util.stream.Stream<Method> methods()
    {
        return Arrays.stream(ConnectorMetadata.class.getMethods()).filter(method -> !java.lang.reflect.Modifier.isStatic(method.getModifiers()));
    }
}
