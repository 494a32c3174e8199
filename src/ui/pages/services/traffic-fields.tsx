// Load balancing, timeouts, retries and connections of a service; knows no target.
import { Select, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";
import { DurationField } from "../../parts/fields.tsx";
import { FoldedSection, SubHead } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { RetryFields, retrySummary } from "./retry-fields.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";
import { isHttp } from "./service-values.ts";

const SOURCES = [
  { value: "ip", label: "Client IP address" },
  { value: "header", label: "Header" },
  { value: "cookie", label: "Cookie" },
  { value: "query", label: "Query parameter" },
  { value: "path", label: "Path" },
  { value: "consumer", label: "Consumer" },
];

export function LoadBalancingFields({ form }: ServiceFieldsProps) {
  const { algorithm, protocol } = form.values;
  return (
    <Section title="Load balancing" text="How requests are distributed across the targets.">
      <Stack>
        <Select
          label="Algorithm"
          data={[
            { value: "round_robin", label: "Weighted round robin" },
            { value: "least_connections", label: "Least connections" },
            { value: "random_two", label: "Power of two random choices" },
            { value: "ewma", label: "Lowest latency (EWMA)" },
            { value: "consistent_hash", label: "Consistent hashing" },
            { value: "first", label: "First healthy target" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("algorithm")}
        />
        {algorithm === "consistent_hash" && <HashFields form={form} />}
        {isHttp(protocol) && (
          <Switch
            label="Sticky sessions"
            description="With a cookie, for applications that keep sessions in memory"
            {...form.getInputProps("sticky.enabled", { type: "checkbox" })}
          />
        )}
        {isHttp(protocol) && form.values.sticky.enabled && (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput label="Cookie name" {...form.getInputProps("sticky.cookie")} />
            <DurationField
              label="Cookie lifetime"
              unit="s"
              zero="session cookie"
              {...form.getInputProps("sticky.ttl")}
            />
          </SimpleGrid>
        )}
      </Stack>
    </Section>
  );
}

const isNamed = (source: string) => ["header", "cookie", "query"].includes(source);

function HashFields({ form }: ServiceFieldsProps) {
  const { source } = form.values.hash_on;
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }}>
      <Select
        label="Hash key"
        data={SOURCES}
        allowDeselect={false}
        {...form.getInputProps("hash_on.source")}
      />
      {isNamed(source) && (
        <TextInput
          label={`${SOURCES.find(({ value }) => value === source)?.label} name`}
          placeholder={source === "header" ? "x-user" : "user"}
          {...form.getInputProps("hash_on.name")}
        />
      )}
      <Select
        label="Fallback hash key"
        data={SOURCES.filter(({ value }) => !isNamed(value) || value === source)}
        allowDeselect={false}
        {...form.getInputProps("hash_on.fallback")}
      />
    </SimpleGrid>
  );
}

export function TimeoutFields({ form }: ServiceFieldsProps) {
  const { connect_timeout, response_timeout } = form.values;
  return (
    <FoldedSection
      title="Timeouts"
      text="How long the gateway waits for a target."
      summary={`${connect_timeout / 1000} s to connect, ${response_timeout / 1000} s to the first byte.`}
      fields={[
        ...["connect_timeout", "response_timeout", "read_timeout", "write_timeout"],
        ...["request_timeout", "slow_start"],
      ]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField label="Connect" unit="ms" {...form.getInputProps("connect_timeout")} />
        <DurationField
          label="First byte of the response"
          unit="ms"
          {...form.getInputProps("response_timeout")}
        />
        <DurationField
          label="Between two reads of the response"
          unit="ms"
          {...form.getInputProps("read_timeout")}
        />
        <DurationField
          label="Between two writes of the request"
          unit="ms"
          {...form.getInputProps("write_timeout")}
        />
        <DurationField
          label="Whole request"
          unit="ms"
          zero="no limit"
          {...form.getInputProps("request_timeout")}
        />
        <DurationField
          label="Slow start"
          description="A new target reaches its full share after this time"
          unit="ms"
          zero="off"
          {...form.getInputProps("slow_start")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}

export function RetrySection({ form }: ServiceFieldsProps) {
  return (
    <FoldedSection
      title="Retries"
      text="The gateway retries a failed request at another target."
      summary={retrySummary(form.values.retries)}
      fields={["retries"]}
      errors={form.errors}
    >
      <RetryFields input={(name) => form.getInputProps(`retries.${name}`)} />
    </FoldedSection>
  );
}

export function ConnectionFields({ form }: ServiceFieldsProps) {
  const isWeb = isHttp(form.values.protocol);
  const { resolve, max_connections_per_target: limit } = form.values;
  return (
    <FoldedSection
      title="Connections"
      text="Limits, keep-alive and name resolution."
      summary={`${limit === 0 ? "No limit" : `At most ${limit} concurrent requests`} per target; resolved by ${resolve.toUpperCase()}.`}
      fields={["keepalive", "response_buffer_bytes", "resolve", "max_connections_per_target"]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Concurrent requests per target"
          description="Requests above the limit get status 503. 0: no limit"
          empty={0}
          {...form.getInputProps("max_connections_per_target")}
        />
        <Select
          label="Name resolution"
          data={[
            { value: "dns", label: "DNS, refreshed at run time" },
            { value: "srv", label: "DNS SRV records, with ports" },
            { value: "static", label: "Once, at start" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("resolve")}
        />
      </SimpleGrid>
      {isWeb && (
        <>
          <SubHead title="Keep-alive" text="Reuses connections across requests." />
          <SimpleGrid cols={{ base: 1, sm: 3 }}>
            <NumberField
              label="Idle connections"
              description="Per target and worker. 0: none"
              empty={0}
              {...form.getInputProps("keepalive.size")}
            />
            <DurationField
              label="Idle timeout"
              unit="ms"
              {...form.getInputProps("keepalive.idle_timeout")}
            />
            <NumberField
              label="Requests per connection"
              description="0: no limit"
              empty={0}
              {...form.getInputProps("keepalive.max_requests")}
            />
          </SimpleGrid>
          <NumberField
            label="Response buffer"
            description="Larger responses are streamed"
            suffix=" bytes"
            empty={0}
            {...form.getInputProps("response_buffer_bytes")}
          />
        </>
      )}
    </FoldedSection>
  );
}
