// Filters in the page URL, so that a view can be shared and survives a reload; knows no list.
import { useCallback } from "react";
import { useSearchParams } from "wouter";

/** One query parameter as state; the default is omitted. */
export function useUrlState(
  name: string,
  initial = "",
): readonly [value: string, set: (value: string) => void] {
  const [parameters, setParameters] = useSearchParams();
  const set = useCallback(
    (value: string) =>
      setParameters(
        () => {
          // Several setters may run before the next render.
          const next = new URLSearchParams(location.search);
          if (value === initial) next.delete(name);
          else next.set(name, value);
          return next;
        },
        { replace: true },
      ),
    [setParameters, name, initial],
  );
  return [parameters.get(name) ?? initial, set];
}
