// When an attempt that failed is made again, for the forms of services and of routes; knows neither.
import { MultiSelect, Select, SimpleGrid } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { DurationField } from "../../parts/fields.tsx";
import { NumberField } from "../../parts/number-field.tsx";

/** What `form.getInputProps` gives for `retries.NAME`. */
export type RetryInput = (
  name: string,
) => ReturnType<UseFormReturnType<Record<string, unknown>>["getInputProps"]>;

const REASONS = [
  { value: "connect", label: "no connection" },
  { value: "reset", label: "connection lost" },
  { value: "timeout", label: "time-out" },
  ...["500", "502", "503", "504", "429"].map((value) => ({ value, label: `status ${value}` })),
];

/** `2 more attempts, idempotent methods only`. */
export function retrySummary({ count, methods }: { count: number; methods: string }): string {
  if (count === 0) return "No request is sent twice.";
  const which = methods === "all" ? "all methods" : "only methods that do no harm twice";
  return `${count} more ${count === 1 ? "attempt" : "attempts"}, ${which}.`;
}

export function RetryFields({ input }: { readonly input: RetryInput }) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Attempts after the first"
          description="0: never again"
          {...{ max: 10, empty: 0 }}
          {...input("count")}
        />
        <Select
          label="Requests that may be sent twice"
          description="A POST sent twice may order twice"
          data={[
            { value: "idempotent", label: "GET, PUT, DELETE and the like" },
            { value: "all", label: "All, POST too" },
          ]}
          allowDeselect={false}
          {...input("methods")}
        />
      </SimpleGrid>
      <MultiSelect label="Reasons to try again" data={REASONS} clearable {...input("on")} />
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <DurationField
          label="Time for one attempt"
          unit="ms"
          zero="only the total counts"
          {...input("per_try_timeout")}
        />
        <DurationField
          label="First pause"
          description="Doubled each time"
          unit="ms"
          {...input("backoff_ms")}
        />
        <NumberField
          label="Share of retries at most"
          description="Of all requests"
          {...{ max: 100, suffix: " %", empty: 0 }}
          {...input("budget_percent")}
        />
      </SimpleGrid>
    </>
  );
}
