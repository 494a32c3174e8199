// API errors of the schema-generated parts of a plugin's form; renders nothing.
import type { UseFormReturnType } from "@mantine/form";
import { useMemo } from "react";
import type { PluginValues } from "./plugin-values.ts";

export interface PluginFieldsProps {
  readonly form: UseFormReturnType<PluginValues>;
}

/** The API errors of a field and of the fields below it, by relative path. */
export function useErrorsBelow(form: PluginFieldsProps["form"], field: string) {
  const own = Object.entries(form.errors).filter(
    ([path]) => path === field || path.startsWith(`${field}.`),
  );
  const text = JSON.stringify(own.map(([path, error]) => [path.slice(field.length + 1), error]));
  // A stable object, because the form focuses the first error when it changes.
  return useMemo(
    () => Object.fromEntries(JSON.parse(text) as [string, string][]) as Record<string, string>,
    [text],
  );
}
