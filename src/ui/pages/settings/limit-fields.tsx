// Fields of the settings that keep single requests and all of them together within bounds.
import { SimpleGrid } from "@mantine/core";
import { DurationField } from "../../parts/fields.tsx";
import { FoldedSection, SubHead } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { inBytes } from "../../parts/quantities.ts";
import type { SettingsFieldsProps } from "./settings-page.tsx";

const bytes = (text: string, value: number) => `${text} (${inBytes(value)})`;

export function LimitFields({ form }: SettingsFieldsProps) {
  const { limits } = form.values;
  return (
    <FoldedSection
      title="Limits"
      text="The defaults fit nearly everybody. Plugins limit more finely, by route and client."
      fields={["limits"]}
      errors={form.errors}
    >
      <RequestFields form={form} />
      <AbortFields form={form} />
      <SubHead title="Of all together" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Requests in flight per worker"
          description="More are answered with 503. 0: no limit"
          {...{ min: 0, max: 10_000_000, empty: 0 }}
          {...form.getInputProps("limits.max_in_flight_requests")}
        />
        <NumberField
          label="Requests in flight in all"
          description="More are answered with 503. 0: no limit"
          {...{ min: 0, max: 10_000_000, empty: 0 }}
          {...form.getInputProps("limits.max_in_flight_total")}
        />
        <NumberField
          label="Memory of the gateway"
          description={
            limits.max_memory_bytes === 0
              ? "With more, new requests are answered with 503. 0: 80 % of what the machine allows"
              : bytes("With more, new requests are answered with 503", limits.max_memory_bytes)
          }
          suffix=" bytes"
          {...{ min: 0, empty: 0 }}
          {...form.getInputProps("limits.max_memory_bytes")}
        />
        <NumberField
          label="Memory for collected bodies per worker"
          description={bytes("Past it bodies are streamed", limits.response_buffer_budget_bytes)}
          suffix=" bytes"
          {...{ min: 0, max: 4_294_967_296, empty: 67_108_864 }}
          {...form.getInputProps("limits.response_buffer_budget_bytes")}
        />
        <NumberField
          label="Counted keys"
          description="Clients and the like that plugins count at the same time. Takes effect at the next start"
          {...{ min: 1024, max: 4_194_304, empty: 131_072 }}
          {...form.getInputProps("limits.counter_keys")}
        />
        <DurationField
          label="Time to end at a stop"
          description="Requests in flight get so long when the gateway stops"
          unit="ms"
          {...form.getInputProps("limits.shutdown_timeout")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}

function RequestFields({ form }: SettingsFieldsProps) {
  const { limits } = form.values;
  return (
    <>
      <SubHead title="Of a request" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Header fields"
          description="More are answered with 431"
          {...{ min: 10, max: 100, empty: 100 }}
          {...form.getInputProps("limits.max_header_fields")}
        />
        <NumberField
          label="Length of path and query"
          description={bytes("More is answered with 414", limits.max_target_bytes)}
          suffix=" bytes"
          {...{ min: 256, max: 16_384, empty: 8192 }}
          {...form.getInputProps("limits.max_target_bytes")}
        />
        <DurationField
          label="Time for the head of a request"
          description="On fronted listeners; a client that takes longer is answered with 408. 0: 12 s, without an answer"
          unit="ms"
          {...form.getInputProps("limits.head_read_timeout")}
        />
        <DurationField
          label="Silence while a body is sent"
          description="A client that sends nothing for so long is answered with 408"
          unit="ms"
          {...form.getInputProps("limits.body_read_timeout")}
        />
        <DurationField
          label="Grace for slow request bodies"
          description="A client is waited for so long before the minimum rate of its listener or route holds"
          unit="ms"
          {...form.getInputProps("limits.body_min_rate_grace")}
        />
        <DurationField
          label="Silence while an answer is taken"
          description="A client that takes nothing for so long is cut off"
          unit="ms"
          {...form.getInputProps("limits.response_write_timeout")}
        />
        <NumberField
          label="Head of a target's answer"
          description={bytes("More is answered with 502", limits.max_response_head_bytes)}
          suffix=" bytes"
          {...{ min: 1024, max: 1_048_576, empty: 65_536 }}
          {...form.getInputProps("limits.max_response_head_bytes")}
        />
      </SimpleGrid>
    </>
  );
}

function AbortFields({ form }: SettingsFieldsProps) {
  return (
    <>
      <SubHead title="Aborted requests" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Per connection"
          description="Aborted in ten seconds, beside as many as are completed. More requests are answered with 429. 0: no limit"
          {...{ min: 0, max: 1_000_000, empty: 300 }}
          {...form.getInputProps("limits.max_aborted_per_connection")}
        />
        <NumberField
          label="Per client address"
          description="Aborted in ten seconds, in one worker. More requests are answered with 429. 0: no limit"
          {...{ min: 0, max: 1_000_000, empty: 2000 }}
          {...form.getInputProps("limits.max_aborted_per_address")}
        />
      </SimpleGrid>
    </>
  );
}
