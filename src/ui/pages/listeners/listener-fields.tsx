// Form fields of a listener for TLS, client certificates, PROXY protocol and limits; knows no route.
import { Alert, Select, SimpleGrid, Stack, Switch, Textarea } from "@mantine/core";
import { DurationField, ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { ListenerFieldsProps } from "./listener-form.tsx";
import { usesOnlyStandard } from "./listener-values.ts";

interface EngineFieldsProps extends ListenerFieldsProps {
  readonly isNew: boolean;
}

export function EngineFields({ form, isNew }: EngineFieldsProps) {
  const { engine, protocol } = form.values;
  const isStandard = engine === "standard";
  const isChanged = !isNew && (form.isDirty("engine") || form.isDirty("shared_engines"));
  return (
    <Section
      title="HTTP engine"
      text="Only the full engine can serve gRPC, trailers, WebSockets over HTTP/2 and downloads whose Content-Length must not get lost."
    >
      <Stack>
        <Select
          label="Engine"
          description="The full engine needs about 5 times the processor time for a small HTTP/2 request, and has no HTTP/3"
          data={[
            { value: "standard", label: "Standard: the fastest" },
            { value: "full", label: "Full: also gRPC, for all host names" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("engine")}
        />
        {isStandard && protocol === "https" && (
          <Switch
            label="Both engines"
            description="Host names of gRPC services and of routes with exact responses use the full engine, all others the standard one. The name in the TLS handshake decides. Costs a hop inside the gateway for all names, and HTTP/3"
            {...form.getInputProps("shared_engines", { type: "checkbox" })}
          />
        )}
        {!usesOnlyStandard(form.values) && <StreamFields form={form} />}
        {isChanged && (
          <Alert color="yellow" title="The listener is opened again">
            Saving closes the idle connections of this listener; requests in progress end normally.
          </Alert>
        )}
      </Stack>
    </Section>
  );
}

function StreamFields({ form }: ListenerFieldsProps) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <NumberField
        label="Concurrent streams per connection"
        description="HTTP/2 requests that a client may have open on one connection"
        min={1}
        max={1000}
        empty={100}
        {...form.getInputProps("max_concurrent_streams")}
      />
      <DurationField
        label="Maximum connection age"
        description="Then clients are asked to connect again, so that they spread over gateways. 0: no limit"
        unit="s"
        {...form.getInputProps("max_connection_age")}
      />
    </SimpleGrid>
  );
}

export function TlsFields({ form }: ListenerFieldsProps) {
  return (
    <Section
      title="TLS"
      text="The gateway selects the certificate by the name that the client requests (SNI)."
    >
      <Stack>
        <Select
          label="Minimum TLS version"
          description="1.3 denies clients from before 2018"
          data={["1.2", "1.3"]}
          allowDeselect={false}
          {...form.getInputProps("tls_min_version")}
        />
        <Switch
          label="Reject unknown names"
          description="Closes TLS connections whose server name has no certificate"
          {...form.getInputProps("strict_sni", { type: "checkbox" })}
        />
        {usesOnlyStandard(form.values) && (
          <Switch
            label="HTTP/3"
            description="Over UDP on the same port, which the firewall must allow. A certificate change may close its connections"
            {...form.getInputProps("http3", { type: "checkbox" })}
          />
        )}
      </Stack>
    </Section>
  );
}

const mono = {
  input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 },
};

export function ClientCertificateFields({ form }: ListenerFieldsProps) {
  const { client_auth: auth, http2, engine } = form.values;
  return (
    <FoldedSection
      title="Client certificates"
      text="Clients authenticate with a certificate (mTLS)."
      summary={auth === "none" ? "Not requested." : auth === "request" ? "Optional." : "Required."}
      isOpenAtFirst={auth !== "none"}
      fields={["client_auth", "client_ca", "client_crl", "http2"]}
      errors={form.errors}
    >
      <Select
        label="Client certificates"
        data={[
          { value: "none", label: "Not requested" },
          { value: "request", label: "Optional, must be valid if presented" },
          { value: "require", label: "Required" },
        ]}
        allowDeselect={false}
        {...form.getInputProps("client_auth")}
      />
      {auth !== "none" && (
        <>
          {http2 && engine === "standard" && (
            <Alert color="yellow" title="HTTP/2 must be off">
              With client certificates, the standard engine supports HTTP/1.1 only: turn HTTP/2 off
              above, or use the full engine.
            </Alert>
          )}
          <Textarea
            label="Client CAs"
            description="PEM certificates of the only CAs that are trusted"
            placeholder="-----BEGIN CERTIFICATE-----"
            required
            autosize={true}
            minRows={3}
            maxRows={12}
            styles={mono}
            {...form.getInputProps("client_ca")}
          />
          <Textarea
            label="Revocation lists"
            description="PEM, one per CA. After a list expires, the certificates of its CA are rejected"
            placeholder="-----BEGIN X509 CRL-----"
            autosize={true}
            minRows={2}
            maxRows={12}
            styles={mono}
            {...form.getInputProps("client_crl")}
          />
        </>
      )}
    </FoldedSection>
  );
}

export function ProxyFields({ form }: ListenerFieldsProps) {
  const { proxy_protocol: isOn, trusted_proxies: trusted } = form.values;
  return (
    <FoldedSection
      title="Behind another proxy"
      text="Proxies that are trusted to name the client."
      summary={`${trusted.length === 0 ? "None" : trusted.join(", ")}${isOn ? ", by the PROXY protocol" : ""}.`}
      isOpenAtFirst={isOn || trusted.length > 0}
      fields={["proxy_protocol", "trusted_proxies"]}
      errors={form.errors}
    >
      <ListField
        label="Trusted proxies"
        description="Networks whose X-Forwarded-For is trusted, in addition to those of the gateway settings"
        placeholder="10.0.0.0/8"
        {...form.getInputProps("trusted_proxies")}
      />
      <Switch
        label="Require the PROXY protocol"
        description="The gateway closes connections without it and from untrusted addresses"
        {...form.getInputProps("proxy_protocol", { type: "checkbox" })}
      />
    </FoldedSection>
  );
}

export function LimitFields({ form }: ListenerFieldsProps) {
  const { max_connections: most, idle_timeout } = form.values;
  return (
    <FoldedSection
      title="Limits"
      text="Connections and requests above a limit are closed or rejected."
      summary={`${most === 0 ? "Any number of connections" : `At most ${most} connections`}; idle timeout ${idle_timeout} s.`}
      fields={[
        ...["max_connections", "max_connections_per_address", "max_header_bytes"],
        ...["max_in_flight_requests", "max_body_bytes", "body_min_rate", "idle_timeout"],
      ]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Connections"
          description="0: no limit"
          empty={0}
          {...form.getInputProps("max_connections")}
        />
        <NumberField
          label="Connections per client address"
          description="0: no limit"
          empty={0}
          {...form.getInputProps("max_connections_per_address")}
        />
        <NumberField
          label="Requests in flight"
          description="In all workers. Requests above the limit get status 503. 0: no limit"
          empty={0}
          {...form.getInputProps("max_in_flight_requests")}
        />
        <NumberField
          label="Maximum request body"
          description="0: no limit"
          empty={0}
          suffix=" bytes"
          {...form.getInputProps("max_body_bytes")}
        />
        <NumberField
          label="Maximum request head"
          min={1024}
          max={16_384}
          empty={16_384}
          suffix=" bytes"
          {...form.getInputProps("max_header_bytes")}
        />
        <NumberField
          label="Minimum request body rate"
          description="Slower clients get status 408. 0: no minimum"
          empty={500}
          suffix=" bytes per second"
          {...form.getInputProps("body_min_rate")}
        />
        <DurationField label="Idle timeout" unit="s" {...form.getInputProps("idle_timeout")} />
      </SimpleGrid>
    </FoldedSection>
  );
}
