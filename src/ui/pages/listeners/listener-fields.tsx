// What a listener asks of connections: TLS, client certificates, PROXY protocol, limits; knows no route.
import { Alert, Select, SimpleGrid, Stack, Switch, Textarea } from "@mantine/core";
import { DurationField, ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { ListenerFieldsProps } from "./listener-form.tsx";

export function TlsFields({ form }: ListenerFieldsProps) {
  return (
    <Section
      title="TLS"
      text="Which certificate is shown is chosen by the name that a client asks for."
    >
      <Stack>
        <Select
          label="Oldest version of TLS"
          description="1.3 keeps out clients from before 2018"
          data={["1.2", "1.3"]}
          allowDeselect={false}
          {...form.getInputProps("tls_min_version")}
        />
        <Switch
          label="Refuse unknown names"
          description="Clients must ask for a name that a certificate is there for"
          {...form.getInputProps("strict_sni", { type: "checkbox" })}
        />
        <Switch
          label="HTTP/3"
          description="Over UDP, on the same port: the firewall must let it through. When certificates change, its connections may be lost"
          {...form.getInputProps("http3", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}

const mono = {
  input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 },
};

export function ClientCertificateFields({ form }: ListenerFieldsProps) {
  const { client_auth: auth, http2 } = form.values;
  return (
    <FoldedSection
      title="Client certificates"
      text="Clients show a certificate to come in, beside or instead of a password."
      summary={
        auth === "none"
          ? "Nobody is asked."
          : auth === "request"
            ? "They may be shown."
            : "They must be shown."
      }
      isOpenAtFirst={auth !== "none"}
      fields={["client_auth", "client_ca", "client_crl", "http2"]}
      errors={form.errors}
    >
      <Select
        label="Clients"
        data={[
          { value: "none", label: "are not asked" },
          { value: "request", label: "may show one, and then it must hold" },
          { value: "require", label: "must show one" },
        ]}
        allowDeselect={false}
        {...form.getInputProps("client_auth")}
      />
      {auth !== "none" && (
        <>
          {http2 && (
            <Alert color="yellow" title="HTTP/2 has to be off">
              A listener that asks for certificates speaks HTTP/1.1 only: switch off HTTP/2 above.
            </Alert>
          )}
          <Textarea
            label="Authorities that sign them"
            description="PEM certificates; nobody else counts"
            placeholder="-----BEGIN CERTIFICATE-----"
            required
            {...{ autosize: true, minRows: 3, maxRows: 12, styles: mono }}
            {...form.getInputProps("client_ca")}
          />
          <Textarea
            label="Revocation lists"
            description="PEM, one for each authority. When one has run out, its certificates are refused"
            placeholder="-----BEGIN X509 CRL-----"
            {...{ autosize: true, minRows: 2, maxRows: 12, styles: mono }}
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
      text="Who is believed when it says who the client is."
      summary={`${trusted.length === 0 ? "Nobody" : trusted.join(", ")}${isOn ? ", by the PROXY protocol" : ""}.`}
      isOpenAtFirst={isOn || trusted.length > 0}
      fields={["proxy_protocol", "trusted_proxies"]}
      errors={form.errors}
    >
      <ListField
        label="Trusted proxies"
        description="Networks whose X-Forwarded-For is believed, beside those of the settings"
        placeholder="10.0.0.0/8"
        {...form.getInputProps("trusted_proxies")}
      />
      <Switch
        label="Expect the PROXY protocol"
        description="Every connection must begin with it and come from a trusted proxy; all others are closed"
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
      text="What is over a limit is closed or refused."
      summary={`${most === 0 ? "Any number of connections" : `At most ${most} connections`}; idle ones are kept for ${idle_timeout} s.`}
      fields={[
        ...["max_connections", "max_connections_per_address", "max_header_bytes"],
        ...["max_in_flight_requests", "max_body_bytes", "body_min_rate", "idle_timeout"],
      ]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Connections at once"
          description="0: no limit"
          empty={0}
          {...form.getInputProps("max_connections")}
        />
        <NumberField
          label="Connections at once from one address"
          description="0: no limit"
          empty={0}
          {...form.getInputProps("max_connections_per_address")}
        />
        <NumberField
          label="Requests in flight"
          description="In all workers; more are answered with 503. 0: no limit"
          empty={0}
          {...form.getInputProps("max_in_flight_requests")}
        />
        <NumberField
          label="Largest body of a request"
          description="0: no limit"
          {...{ empty: 0, suffix: " bytes" }}
          {...form.getInputProps("max_body_bytes")}
        />
        <NumberField
          label="Largest head of a request"
          {...{ min: 1024, max: 16_384, empty: 16_384, suffix: " bytes" }}
          {...form.getInputProps("max_header_bytes")}
        />
        <NumberField
          label="Minimum rate of request bodies"
          description="Clients that send more slowly are answered with 408. 0: any rate"
          {...{ empty: 500, suffix: " bytes per second" }}
          {...form.getInputProps("body_min_rate")}
        />
        <DurationField
          label="Idle connections are kept for"
          unit="s"
          {...form.getInputProps("idle_timeout")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}
