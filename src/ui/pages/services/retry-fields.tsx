// Retry fields for the forms of services and of routes; knows neither.
import { MultiSelect, Select, SimpleGrid } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { DurationField } from "../../parts/fields.tsx";
import { NumberField } from "../../parts/number-field.tsx";

/** What `form.getInputProps` gives for `retries.NAME`. */
export type RetryInput = (
  name: string,
) => ReturnType<UseFormReturnType<Record<string, unknown>>["getInputProps"]>;

const REASONS = [
  { value: "connect", label: "connection failed" },
  { value: "reset", label: "connection lost" },
  { value: "timeout", label: "timeout" },
  ...["500", "502", "503", "504", "429"].map((value) => ({ value, label: `status ${value}` })),
];

/** `2 retries, idempotent methods only`. */
export function retrySummary({ count, methods }: { count: number; methods: string }): string {
  if (count === 0) return "No retries.";
  const which = methods === "all" ? "all methods" : "idempotent methods only";
  return `${count} ${count === 1 ? "retry" : "retries"}, ${which}.`;
}

export function RetryFields({ input }: { readonly input: RetryInput }) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Retries"
          description="Attempts after the first. 0: no retries"
          max={10}
          empty={0}
          {...input("count")}
        />
        <Select
          label="Retried methods"
          description="A retried POST may run twice at the target"
          data={[
            { value: "idempotent", label: "Idempotent: GET, PUT, DELETE and others" },
            { value: "all", label: "All, including POST" },
          ]}
          allowDeselect={false}
          {...input("methods")}
        />
      </SimpleGrid>
      <MultiSelect label="Retry conditions" data={REASONS} clearable {...input("on")} />
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <DurationField
          label="Timeout per attempt"
          unit="ms"
          zero="only the total timeout applies"
          {...input("per_try_timeout")}
        />
        <DurationField
          label="Initial backoff"
          description="Doubles with each retry"
          unit="ms"
          {...input("backoff_ms")}
        />
        <NumberField
          label="Retry budget"
          description="Maximum share of retries among all requests"
          max={100}
          suffix=" %"
          empty={0}
          {...input("budget_percent")}
        />
      </SimpleGrid>
    </>
  );
}
