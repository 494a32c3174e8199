// What the gateway said about the parts of a plugin's form that are drawn from schemas; draws nothing.
import type { UseFormReturnType } from "@mantine/form";
import { useMemo } from "react";
import type { PluginValues } from "./plugin-values.ts";

export interface PluginFieldsProps {
  readonly form: UseFormReturnType<PluginValues>;
}

/** What the gateway said about a field and those below it, by their paths in it. */
export function useErrorsBelow(form: PluginFieldsProps["form"], field: string) {
  const own = Object.entries(form.errors).filter(
    ([path]) => path === field || path.startsWith(`${field}.`),
  );
  const text = JSON.stringify(own.map(([path, error]) => [path.slice(field.length + 1), error]));
  // The same object while they are the same, because the form leads to the first one.
  return useMemo(
    () => Object.fromEntries(JSON.parse(text) as [string, string][]) as Record<string, string>,
    [text],
  );
}
