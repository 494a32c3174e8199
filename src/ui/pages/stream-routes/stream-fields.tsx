// What a stream route asks of connections beside its port: TLS, clients, limits, PROXY protocol; knows no connection.
import { Select, SimpleGrid, Stack, Switch } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import { nameOf } from "../../api/resources.ts";
import { DurationField, ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { StreamFieldsProps } from "./stream-route-form.tsx";

export function TlsFields({ form }: StreamFieldsProps) {
  const certificates = useResourceList("certificates");
  const { tls_mode: mode } = form.values;
  return (
    <Section title="TLS" text="Whether connections are encrypted, and where that ends.">
      <Stack>
        <Select
          label="TLS"
          data={[
            { value: "none", label: "Bytes are passed on as they come" },
            { value: "passthrough", label: "It goes on to the target; only its name is read" },
            { value: "terminate", label: "It ends here, with a certificate of the gateway" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("tls_mode")}
        />
        {mode !== "none" && (
          <ListField
            label="Names"
            description="TLS names that it takes, such as nas.example.com or *.example.com. Several stream routes with different names may share a port. Empty: every connection"
            {...form.getInputProps("sni")}
          />
        )}
        {mode === "terminate" && (
          <Select
            label="Certificate"
            description="Empty: chosen by the name that the client asks for"
            placeholder="by name"
            clearable
            searchable
            data={(certificates.data ?? []).map((object) => ({
              value: object.id,
              label: nameOf(object),
            }))}
            {...form.getInputProps("certificate_id")}
          />
        )}
      </Stack>
    </Section>
  );
}

export function ClientFields({ form }: StreamFieldsProps) {
  const { allow, deny } = form.values;
  return (
    <FoldedSection
      title="Who may connect"
      text="Networks of clients. Whoever is refused is closed without a word."
      summary={
        allow.length === 0 && deny.length === 0
          ? "Everybody."
          : `${allow.length === 0 ? "Everybody" : allow.join(", ")}${deny.length === 0 ? "" : `, but not ${deny.join(", ")}`}.`
      }
      isOpenAtFirst={allow.length > 0 || deny.length > 0}
      fields={["allow", "deny"]}
      errors={form.errors}
    >
      <ListField
        label="Allowed"
        description="Such as 192.168.0.0/16. Empty: everybody"
        {...form.getInputProps("allow")}
      />
      <ListField
        label="Refused"
        description="Goes before what is allowed"
        {...form.getInputProps("deny")}
      />
    </FoldedSection>
  );
}

export function LimitFields({ form }: StreamFieldsProps) {
  const { protocol, max_connections: most, idle_timeout, udp_session_timeout } = form.values;
  const isUdp = protocol === "udp";
  const idle = isUdp ? udp_session_timeout : idle_timeout;
  return (
    <FoldedSection
      title="Limits and times"
      text="How many connections at once, and when they are closed."
      summary={`${most === 0 ? "No limit" : `At most ${most} at once`}; ${idle === 0 ? "never closed" : `closed after ${idle} s`} without a byte.`}
      fields={[
        ...["max_connections", "connect_timeout", "idle_timeout", "udp_session_timeout"],
        "udp_max_sessions",
      ]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Connections at once"
          description="Over all workers. 0: no limit"
          empty={0}
          {...form.getInputProps("max_connections")}
        />
        <DurationField
          label="Time to connect to a target"
          unit="ms"
          {...form.getInputProps("connect_timeout")}
        />
        {isUdp ? (
          <>
            <DurationField
              label="A session ends after"
              description="Without a datagram"
              unit="s"
              {...form.getInputProps("udp_session_timeout")}
            />
            <NumberField
              label="Sessions at once"
              description="In one worker"
              {...{ min: 1, empty: 1 }}
              {...form.getInputProps("udp_max_sessions")}
            />
          </>
        ) : (
          <DurationField
            label="Closed after"
            description="Without a byte in either direction"
            unit="s"
            zero="never"
            {...form.getInputProps("idle_timeout")}
          />
        )}
      </SimpleGrid>
    </FoldedSection>
  );
}

export function ProxyFields({ form }: StreamFieldsProps) {
  const { proxy_protocol_in: isIn, proxy_protocol_out: out } = form.values;
  const parts = [isIn ? "expected" : "", out === "off" ? "" : `sent to targets (${out})`];
  return (
    <FoldedSection
      title="PROXY protocol"
      text="How proxies tell each other who the client is. Only for proxies before or behind this one."
      summary={parts.filter((part) => part !== "").join(" and ") || "Neither expected nor sent."}
      isOpenAtFirst={isIn || out !== "off"}
      fields={["proxy_protocol_in", "proxy_protocol_trusted", "proxy_protocol_out"]}
      errors={form.errors}
    >
      <Switch
        label="Expect it from a proxy before this one"
        description="Connections without it are closed"
        {...form.getInputProps("proxy_protocol_in", { type: "checkbox" })}
      />
      {isIn && (
        <ListField
          label="Proxies that are believed"
          description="Networks; others are refused"
          {...form.getInputProps("proxy_protocol_trusted")}
        />
      )}
      <Select
        label="Send it to the targets"
        description="Only to targets that expect it"
        data={[
          { value: "off", label: "No" },
          { value: "v1", label: "Version 1, as text" },
          { value: "v2", label: "Version 2, binary" },
        ]}
        allowDeselect={false}
        {...form.getInputProps("proxy_protocol_out")}
      />
    </FoldedSection>
  );
}
