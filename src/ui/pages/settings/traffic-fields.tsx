// Fields of the settings about requests: what nobody takes, how they are named, kept and shown, and where they come from.
import { Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { SettingsFieldsProps } from "./settings-page.tsx";

export function DefaultSiteFields({ form }: SettingsFieldsProps) {
  const { action } = form.values.default_site;
  return (
    <Section title="Default site" text="What a visitor gets when no route takes the request.">
      <Stack>
        <Select
          label="Answer"
          data={[
            { value: "404", label: "Not found: the gateway's page with status 404" },
            { value: "redirect", label: "Send them to another address" },
            { value: "html", label: "Show a page of your own" },
            { value: "close", label: "Close the connection without a word" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("default_site.action")}
        />
        {action === "redirect" && (
          <TextInput
            label="Where to"
            description="An address of your choice, or a path on the same host"
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
    <Section title="Requests" text="How requests are named, and what is shown of them.">
      <Stack>
        <Switch
          label="Give every request an id"
          description="Targets and clients learn it as X-Request-Id, and it leads from a complaint to the line in the log. One that a trusted proxy gave is kept"
          {...form.getInputProps("requests.ids", { type: "checkbox" })}
        />
        <Switch
          label="Debug headers"
          description="Answers say which worker, revision, route and target they come from (X-Sluice-…). Everybody sees them: for the time of a search only"
          {...form.getInputProps("debug_headers", { type: "checkbox" })}
        />
        <ListField
          label="Query parameters to mask"
          description="Words in the names of parameters whose values are secrets. They are shown as *** everywhere: key masks key, api_key and apiKey"
          {...form.getInputProps("requests.redacted_query_names")}
        />
      </Stack>
    </Section>
  );
}

export function RetentionFields({ form }: SettingsFieldsProps) {
  return (
    <Section
      title="History"
      text="How much of the past is kept. What is beyond goes, oldest first."
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <NumberField
          label="Requests"
          description="The last ones, in memory. 0: none is kept"
          {...{ min: 0, max: 1_000_000, empty: 0 }}
          {...form.getInputProps("retention.requests")}
        />
        <NumberField
          label="Revisions"
          description="Versions of the configuration that one can go back to"
          {...{ min: 1, max: 1_000_000, empty: 1000 }}
          {...form.getInputProps("retention.revisions")}
        />
        <NumberField
          label="Days of audit log"
          description="Who did what, at most so long ago"
          {...{ min: 1, max: 3650, empty: 90 }}
          {...form.getInputProps("retention.audit_days")}
        />
        <NumberField
          label="Entries of audit log"
          description="And at most so many"
          {...{ min: 100, max: 10_000_000, empty: 10_000 }}
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
      title="Where clients come from"
      text="Databases in MaxMind's format let plugins decide by country and network (ASN)."
      summary={known.filter((word) => word !== "").join(" and ")}
      isOpenAtFirst={country !== "" || asn !== ""}
      fields={["geoip"]}
      errors={form.errors}
    >
      <TextInput
        label="Country database"
        description="Path of a file on the gateway's machine; read again when it changes"
        placeholder="/var/lib/geoip/GeoLite2-Country.mmdb"
        {...form.getInputProps("geoip.country_db")}
      />
      <TextInput
        label="ASN database"
        description="Path of a file on the gateway's machine"
        placeholder="/var/lib/geoip/GeoLite2-ASN.mmdb"
        {...form.getInputProps("geoip.asn_db")}
      />
    </FoldedSection>
  );
}
