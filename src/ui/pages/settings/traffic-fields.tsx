// Settings fields about requests: default site, request ids, retention, GeoIP.
import { Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { SettingsFieldsProps } from "./settings-page.tsx";

export function DefaultSiteFields({ form }: SettingsFieldsProps) {
  const { action } = form.values.default_site;
  return (
    <Section title="Default site" text="The response when no route matches.">
      <Stack>
        <Select
          label="Response"
          data={[
            { value: "404", label: "Not found: the gateway's page with status 404" },
            { value: "redirect", label: "Redirect" },
            { value: "html", label: "Custom page" },
            { value: "close", label: "Close the connection without a response" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("default_site.action")}
        />
        {action === "redirect" && (
          <TextInput
            label="Redirect to"
            description="A URL, or a path on the same host"
            placeholder="https://www.example.com/"
            required
            {...form.getInputProps("default_site.to")}
          />
        )}
        {action === "html" && (
          <Textarea
            label="Page"
            description="HTML, up to 256 KB; sent with status 200"
            placeholder="<!doctype html><title>Nothing here</title>"
            autosize
            minRows={5}
            maxRows={20}
            spellCheck={false}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
            {...form.getInputProps("default_site.html")}
          />
        )}
      </Stack>
    </Section>
  );
}

export function RequestFields({ form }: SettingsFieldsProps) {
  return (
    <Section title="Requests" text="Request ids, debug headers and masking.">
      <Stack>
        <Switch
          label="Request ids"
          description="The gateway sends X-Request-Id to targets and clients and logs it. An id from a trusted proxy is preserved"
          {...form.getInputProps("requests.ids", { type: "checkbox" })}
        />
        <Switch
          label="Debug headers"
          description="Responses name worker, revision, route and target (X-Sluice-…). All clients see them: for debugging only"
          {...form.getInputProps("debug_headers", { type: "checkbox" })}
        />
        <ListField
          label="Masked query parameters"
          description="Words in the names of parameters with secret values, which are shown as ***: key masks key, api_key and apiKey"
          {...form.getInputProps("requests.redacted_query_names")}
        />
      </Stack>
    </Section>
  );
}

export function RetentionFields({ form }: SettingsFieldsProps) {
  return (
    <Section
      title="Retention"
      text="How much history is stored. The oldest entries are deleted first."
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Requests"
          description="Recent requests in memory. 0: none"
          min={0}
          max={1_000_000}
          empty={0}
          {...form.getInputProps("retention.requests")}
        />
        <NumberField
          label="Revisions"
          description="Versions of the configuration that can be restored"
          min={1}
          max={1_000_000}
          empty={1000}
          {...form.getInputProps("retention.revisions")}
        />
        <NumberField
          label="Audit log days"
          description="Maximum age of audit log entries"
          min={1}
          max={3650}
          empty={90}
          {...form.getInputProps("retention.audit_days")}
        />
        <NumberField
          label="Audit log entries"
          description="Maximum number of audit log entries"
          min={100}
          max={10_000_000}
          empty={10_000}
          {...form.getInputProps("retention.audit_entries")}
        />
      </SimpleGrid>
    </Section>
  );
}

export function GeoFields({ form }: SettingsFieldsProps) {
  const { country_db: country, asn_db: asn } = form.values.geoip;
  const known = [country === "" ? "" : "countries", asn === "" ? "" : "networks"];
  return (
    <FoldedSection
      title="GeoIP"
      text="Databases in MaxMind format for plugins that use country or network (ASN)."
      summary={known.filter((word) => word !== "").join(" and ")}
      isOpenAtFirst={country !== "" || asn !== ""}
      fields={["geoip"]}
      errors={form.errors}
    >
      <TextInput
        label="Country database"
        description="File path on the gateway's machine; reloaded when the file changes"
        placeholder="/var/lib/geoip/GeoLite2-Country.mmdb"
        {...form.getInputProps("geoip.country_db")}
      />
      <TextInput
        label="ASN database"
        description="File path on the gateway's machine"
        placeholder="/var/lib/geoip/GeoLite2-ASN.mmdb"
        {...form.getInputProps("geoip.asn_db")}
      />
    </FoldedSection>
  );
}
