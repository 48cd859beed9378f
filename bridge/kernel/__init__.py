"""What everything else uses: errors, types, settings, telemetry, plugins."""
