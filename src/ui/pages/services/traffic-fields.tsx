// How a service shares out its traffic and how long it waits; knows no target.
import { Select, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";
import { DurationField } from "../../parts/fields.tsx";
import { FoldedSection, SubHead } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { RetryFields, retrySummary } from "./retry-fields.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";
import { isHttp } from "./service-values.ts";

const SOURCES = [
  { value: "ip", label: "the client's address" },
  { value: "header", label: "a header" },
  { value: "cookie", label: "a cookie" },
  { value: "query", label: "a query parameter" },
  { value: "path", label: "the path" },
  { value: "consumer", label: "the consumer" },
];

export function SharingFields({ form }: ServiceFieldsProps) {
  const { algorithm, protocol } = form.values;
  return (
    <Section title="Sharing out" text="Which target gets the next request when there are several.">
      <Stack>
        <Select
          label="Which target is next"
          data={[
            { value: "round_robin", label: "Each in turn, by weight" },
            { value: "least_connections", label: "The one with the fewest requests" },
            { value: "random_two", label: "The better of two at random" },
            { value: "ewma", label: "The fastest of late" },
            { value: "consistent_hash", label: "Always the same for the same client" },
            { value: "first", label: "The first that works" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("algorithm")}
        />
        {algorithm === "consistent_hash" && <HashFields form={form} />}
        {isHttp(protocol) && (
          <Switch
            label="Keep visitors on their target"
            description="By a cookie. For applications that keep sessions in memory"
            {...form.getInputProps("sticky.enabled", { type: "checkbox" })}
          />
        )}
        {isHttp(protocol) && form.values.sticky.enabled && (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput label="Name of the cookie" {...form.getInputProps("sticky.cookie")} />
            <DurationField
              label="Lifetime of the cookie"
              unit="s"
              zero="until the browser is closed"
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
        label="The same client is known by"
        data={SOURCES}
        allowDeselect={false}
        {...form.getInputProps("hash_on.source")}
      />
      {isNamed(source) && (
        <TextInput
          label={`Name of ${SOURCES.find(({ value }) => value === source)?.label}`}
          placeholder={source === "header" ? "x-user" : "user"}
          {...form.getInputProps("hash_on.name")}
        />
      )}
      <Select
        label="When it has none"
        data={SOURCES.filter(({ value }) => !isNamed(value) || value === source)}
        allowDeselect={false}
        {...form.getInputProps("hash_on.fallback")}
      />
    </SimpleGrid>
  );
}

export function TimeFields({ form }: ServiceFieldsProps) {
  const { connect_timeout, response_timeout } = form.values;
  return (
    <FoldedSection
      title="Times"
      text="How long the gateway waits before it gives up."
      summary={`${connect_timeout / 1000} s to connect, ${response_timeout / 1000} s for the first byte.`}
      fields={[
        ...["connect_timeout", "response_timeout", "read_timeout", "write_timeout"],
        ...["request_timeout", "slow_start"],
      ]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField label="To connect" unit="ms" {...form.getInputProps("connect_timeout")} />
        <DurationField
          label="For the first byte of the answer"
          unit="ms"
          {...form.getInputProps("response_timeout")}
        />
        <DurationField
          label="Between two parts of the answer"
          unit="ms"
          {...form.getInputProps("read_timeout")}
        />
        <DurationField
          label="Until the target takes more of the request"
          unit="ms"
          {...form.getInputProps("write_timeout")}
        />
        <DurationField
          label="For the whole request"
          unit="ms"
          zero="no limit"
          {...form.getInputProps("request_timeout")}
        />
        <DurationField
          label="Slow start"
          description="A new target gets its full share after this time"
          unit="ms"
          zero="at once"
          {...form.getInputProps("slow_start")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}

export function RetrySection({ form }: ServiceFieldsProps) {
  return (
    <FoldedSection
      title="Trying again"
      text="A request that failed at one target is sent to another one."
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
      text="Limits, connections that are kept open, and how names become addresses."
      summary={`${limit === 0 ? "No limit" : `At most ${limit} requests at once`} for each target; names by ${resolve.toUpperCase()}.`}
      fields={["keepalive", "response_buffer_bytes", "resolve", "max_connections_per_target"]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Requests at once for each target"
          description="More are answered with 503. 0: no limit"
          empty={0}
          {...form.getInputProps("max_connections_per_target")}
        />
        <Select
          label="Names of targets become addresses by"
          data={[
            { value: "dns", label: "DNS, looked up again when it may have changed" },
            { value: "srv", label: "DNS records of the type SRV, with ports" },
            { value: "static", label: "one look-up, at the start" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("resolve")}
        />
      </SimpleGrid>
      {isWeb && (
        <>
          <SubHead title="Kept open" text="Saves making a connection for each request." />
          <SimpleGrid cols={{ base: 1, sm: 3 }}>
            <NumberField
              label="Idle connections"
              description="For each target and worker. 0: none"
              empty={0}
              {...form.getInputProps("keepalive.size")}
            />
            <DurationField
              label="Kept for"
              unit="ms"
              {...form.getInputProps("keepalive.idle_timeout")}
            />
            <NumberField
              label="Requests on one connection"
              description="0: no limit"
              empty={0}
              {...form.getInputProps("keepalive.max_requests")}
            />
          </SimpleGrid>
          <NumberField
            label="Answers sent in one piece, up to"
            description="Longer ones are passed on as they come"
            {...{ suffix: " bytes", empty: 0 }}
            {...form.getInputProps("response_buffer_bytes")}
          />
        </>
      )}
    </FoldedSection>
  );
}
