// Settings fields for limits per request and for the whole gateway.
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
      text="Limits of the whole gateway. Plugins can limit by route and client."
      fields={["limits"]}
      errors={form.errors}
    >
      <RequestFields form={form} />
      <AbortFields form={form} />
      <ConnectionFields form={form} />
      <SubHead title="Gateway" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Requests in flight per worker"
          description="Requests above the limit get status 503. 0: no limit"
          min={0}
          max={10_000_000}
          empty={0}
          {...form.getInputProps("limits.max_in_flight_requests")}
        />
        <NumberField
          label="Requests in flight in all workers"
          description="Requests above the limit get status 503. 0: no limit"
          min={0}
          max={10_000_000}
          empty={0}
          {...form.getInputProps("limits.max_in_flight_total")}
        />
        <NumberField
          label="Memory limit"
          description={
            limits.max_memory_bytes === 0
              ? "Above the limit, new requests get status 503. 0: 80 % of the machine's memory"
              : bytes("Above the limit, new requests get status 503", limits.max_memory_bytes)
          }
          suffix=" bytes"
          min={0}
          empty={0}
          {...form.getInputProps("limits.max_memory_bytes")}
        />
        <NumberField
          label="Response buffers per worker"
          description={bytes(
            "Above the limit, bodies are streamed",
            limits.response_buffer_budget_bytes,
          )}
          suffix=" bytes"
          min={0}
          max={4_294_967_296}
          empty={67_108_864}
          {...form.getInputProps("limits.response_buffer_budget_bytes")}
        />
        <NumberField
          label="Counter keys"
          description="Keys, such as client addresses, that plugins count at the same time. Takes effect after a restart"
          min={1024}
          max={4_194_304}
          empty={131_072}
          {...form.getInputProps("limits.counter_keys")}
        />
        <DurationField
          label="Shutdown timeout"
          description="Time for requests in flight to finish when the gateway stops"
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
      <SubHead title="Requests" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Request headers"
          description="Requests with more get status 431"
          min={10}
          max={100}
          empty={100}
          {...form.getInputProps("limits.max_header_fields")}
        />
        <NumberField
          label="Path and query length"
          description={bytes("Longer ones get status 414", limits.max_target_bytes)}
          suffix=" bytes"
          min={256}
          max={16_384}
          empty={8192}
          {...form.getInputProps("limits.max_target_bytes")}
        />
        <DurationField
          label="Request head timeout"
          description="On fronted listeners; slower clients get status 408. 0: 12 s, without a response"
          unit="ms"
          {...form.getInputProps("limits.head_read_timeout")}
        />
        <DurationField
          label="Request body timeout"
          description="A client that sends nothing for this time gets status 408"
          unit="ms"
          {...form.getInputProps("limits.body_read_timeout")}
        />
        <DurationField
          label="Grace period for slow request bodies"
          description="Time before the minimum rate of the listener or route applies"
          unit="ms"
          {...form.getInputProps("limits.body_min_rate_grace")}
        />
        <DurationField
          label="Response write timeout"
          description="The gateway closes the connection of a client that reads nothing for this time"
          unit="ms"
          {...form.getInputProps("limits.response_write_timeout")}
        />
        <NumberField
          label="Response head size"
          description={bytes("Larger heads cause status 502", limits.max_response_head_bytes)}
          suffix=" bytes"
          min={1024}
          max={1_048_576}
          empty={65_536}
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
          description="Aborted requests in ten seconds, in addition to as many as complete. Further requests get status 429. 0: no limit"
          min={0}
          max={1_000_000}
          empty={300}
          {...form.getInputProps("limits.max_aborted_per_connection")}
        />
        <NumberField
          label="Per client address"
          description="Aborted requests in ten seconds, per worker. Further requests get status 429. 0: no limit"
          min={0}
          max={1_000_000}
          empty={2000}
          {...form.getInputProps("limits.max_aborted_per_address")}
        />
      </SimpleGrid>
    </>
  );
}

function ConnectionFields({ form }: SettingsFieldsProps) {
  return (
    <>
      <SubHead title="Connections" />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField
          label="Preread timeout"
          description="The gateway closes a connection that sends its PROXY header or TLS ClientHello later"
          unit="ms"
          {...form.getInputProps("limits.preread_timeout")}
        />
        <DurationField
          label="Stream drain timeout"
          description="Open connections of a stream route get this long after the route was deleted or leads elsewhere"
          unit="ms"
          {...form.getInputProps("limits.stream_drain_timeout")}
        />
      </SimpleGrid>
    </>
  );
}
