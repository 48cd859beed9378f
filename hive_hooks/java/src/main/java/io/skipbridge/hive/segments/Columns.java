package io.skipbridge.hive.segments;

import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;

/** The columns of a table as a query was compiled with them. */
public final class Columns
{
    private final String names;
    private final String types;
    private final List<String> nameList;
    private final List<TypeInfo> typeList;

    /**
     * @param names separated by commas
     * @param types Hive's, separated by colons
     */
    public Columns(String names, String types)
    {
        this.names = names;
        this.types = types;
        this.nameList = names.isEmpty() ? Collections.emptyList() : Arrays.asList(names.split(","));
        this.typeList = TypeInfoUtils.getTypeInfosFromTypeString(types);
    }

    /** The columns before a place. */
    Columns first(int count)
    {
        if (count == size()) {
            return this;
        }
        String typesOfFirst = typeList.subList(0, count).stream().map(TypeInfo::getTypeName).collect(Collectors.joining(":"));
        return new Columns(String.join(",", nameList.subList(0, count)), typesOfFirst);
    }

    public String names()
    {
        return names;
    }

    public String types()
    {
        return types;
    }

    public int size()
    {
        return nameList.size();
    }

    public String name(int column)
    {
        return nameList.get(column);
    }

    public TypeInfo type(int column)
    {
        return typeList.get(column);
    }

    /** Of the values in a {@link SegmentRow}. */
    public ObjectInspector inspector(int column)
    {
        return TypeInfoUtils.getStandardWritableObjectInspectorFromTypeInfo(typeList.get(column));
    }

    /** Of the values of a {@link SegmentRow} as a whole. */
    public StructObjectInspector inspector()
    {
        List<ObjectInspector> inspectors = new ArrayList<>();
        for (int i = 0; i < size(); i++) {
            inspectors.add(inspector(i));
        }
        return ObjectInspectorFactory.getStandardStructObjectInspector(nameList, inspectors);
    }
}
