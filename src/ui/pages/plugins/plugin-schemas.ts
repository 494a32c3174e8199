// Which plugins there are, as the gateway describes them; draws nothing.
import { useRead } from "../../api/queries.ts";
import type { PluginSchema } from "./plugin-values.ts";

/** Read once: they change with the gateway's version only. */
export const usePluginSchemas = () => useRead<readonly PluginSchema[]>("plugins/schemas");

/** By name; empty while they are not there yet. */
export function useSchemasByName(): ReadonlyMap<string, PluginSchema> {
  const { data } = usePluginSchemas();
  return new Map((data?.value ?? []).map((schema) => [schema.name, schema]));
}
