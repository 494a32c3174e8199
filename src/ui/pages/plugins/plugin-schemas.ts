// The schemas of the available plugins; renders nothing.
import { useRead } from "../../api/queries.ts";
import type { PluginSchema } from "./plugin-values.ts";

/** They change with the gateway's version, and with files of the plugins directory. */
export const usePluginSchemas = () => useRead<readonly PluginSchema[]>("plugins/schemas");

/** By name; empty while loading. */
export function useSchemasByName(): ReadonlyMap<string, PluginSchema> {
  const { data } = usePluginSchemas();
  return new Map((data?.value ?? []).map((schema) => [schema.name, schema]));
}
