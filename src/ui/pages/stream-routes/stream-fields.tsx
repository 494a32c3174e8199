// Form fields of a stream route for TLS, client networks, limits and the PROXY protocol; knows no connection.
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
    <Section title="TLS" text="TLS mode and the server names that the route matches.">
      <Stack>
        <Select
          label="TLS"
          data={[
            { value: "none", label: "None: bytes are forwarded unchanged" },
            { value: "passthrough", label: "Passthrough: routed by server name (SNI)" },
            { value: "terminate", label: "Terminate, with a certificate of the gateway" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("tls_mode")}
        />
        {mode !== "none" && (
          <ListField
            label="Server names"
            description="TLS server names (SNI) that it matches, such as nas.example.com or *.example.com. Several stream routes with different names may share a port. Empty: any"
            {...form.getInputProps("sni")}
          />
        )}
        {mode === "terminate" && (
          <Select
            label="Certificate"
            description="Empty: selected by the server name (SNI)"
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
      title="Client networks"
      text="The gateway closes connections from denied networks."
      summary={
        allow.length === 0 && deny.length === 0
          ? "All networks."
          : `${allow.length === 0 ? "All networks" : allow.join(", ")}${deny.length === 0 ? "" : `, except ${deny.join(", ")}`}.`
      }
      isOpenAtFirst={allow.length > 0 || deny.length > 0}
      fields={["allow", "deny"]}
      errors={form.errors}
    >
      <ListField
        label="Allowed"
        description="Such as 192.168.0.0/16. Empty: all"
        {...form.getInputProps("allow")}
      />
      <ListField
        label="Denied"
        description="Takes precedence over allowed networks"
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
      title="Limits and timeouts"
      text="Maximum connections and idle timeouts."
      summary={`${most === 0 ? "No limit" : `At most ${most} connections`}; ${idle === 0 ? "no idle timeout" : `idle timeout ${idle} s`}.`}
      fields={[
        ...["max_connections", "connect_timeout", "idle_timeout", "udp_session_timeout"],
        "udp_max_sessions",
      ]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Connections"
          description="In all workers. 0: no limit"
          empty={0}
          {...form.getInputProps("max_connections")}
        />
        <DurationField
          label="Connect timeout"
          unit="ms"
          {...form.getInputProps("connect_timeout")}
        />
        {isUdp ? (
          <>
            <DurationField
              label="Session timeout"
              description="Time without a datagram before the gateway ends a session"
              unit="s"
              {...form.getInputProps("udp_session_timeout")}
            />
            <NumberField
              label="Sessions"
              description="Per worker"
              min={1}
              empty={1}
              {...form.getInputProps("udp_max_sessions")}
            />
          </>
        ) : (
          <DurationField
            label="Idle timeout"
            description="Time without a byte in either direction before the gateway closes a connection"
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
      text="Carries the client address between proxies."
      summary={parts.filter((part) => part !== "").join(" and ") || "Not required, not sent."}
      isOpenAtFirst={isIn || out !== "off"}
      fields={["proxy_protocol_in", "proxy_protocol_trusted", "proxy_protocol_out"]}
      errors={form.errors}
    >
      <Switch
        label="Require it from clients"
        description="The gateway closes connections without it"
        {...form.getInputProps("proxy_protocol_in", { type: "checkbox" })}
      />
      {isIn && (
        <ListField
          label="Trusted proxies"
          description="Networks; connections from others are closed"
          {...form.getInputProps("proxy_protocol_trusted")}
        />
      )}
      <Select
        label="Send it to targets"
        description="Only if the targets require it"
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
