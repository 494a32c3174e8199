// TLS fields of a service for connections to its targets; knows no target.
import { Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import { nameOf } from "../../api/resources.ts";
import { Section } from "../../parts/page-layout.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";

export function TlsFields({ form }: ServiceFieldsProps) {
  const certificates = useResourceList("certificates");
  const chosen = form.values.tls.client_certificate_id;
  const known = (certificates.data ?? []).map((object) => ({
    value: object.id,
    label: nameOf(object),
  }));
  const isKnown = chosen === null || known.some(({ value }) => value === chosen);
  return (
    <Section title="TLS to the targets" text="How the gateway verifies the targets.">
      <Stack>
        <Switch
          label="Verify the target's certificate"
          description="Off only for devices with a self-signed certificate: the connection can then be intercepted"
          {...form.getInputProps("tls.verify", { type: "checkbox" })}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="Server name (SNI)"
            description="Empty: the host of the target"
            placeholder="app.internal"
            {...form.getInputProps("tls.server_name")}
          />
          <Select
            label="Minimum TLS version"
            description="1.3 if every target supports it"
            data={["1.2", "1.3"]}
            allowDeselect={false}
            {...form.getInputProps("tls.min_version")}
          />
        </SimpleGrid>
        <Select
          label="Client certificate"
          description="Presented to targets that require one (mTLS)"
          placeholder="none"
          clearable
          searchable
          data={isKnown ? known : [...known, { value: chosen, label: chosen }]}
          {...form.getInputProps("tls.client_certificate_id")}
        />
        <Textarea
          label="Trusted CAs"
          description="PEM certificates. Empty: the system's CAs"
          placeholder="-----BEGIN CERTIFICATE-----"
          autosize
          minRows={2}
          maxRows={10}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
          {...form.getInputProps("tls.ca_certificates")}
        />
      </Stack>
    </Section>
  );
}
