// Fields of an ACME certificate: names, challenge, accounts and advanced settings.
import { MultiSelect, Radio, Select, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import { ListField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { AccountOffer } from "../acme-accounts/account-offer.tsx";
import { DomainChecks } from "../applications/live-checks.tsx";
import type { CertificateFieldsProps } from "./certificate-form.tsx";
import { DomainsField, type DomainsFieldProps } from "./domains-field.tsx";
import type { CertificateValues } from "./certificate-values.ts";

const challenges = [
  {
    value: "http-01",
    label: "HTTP (http-01)",
    text: "The CA fetches a file from port 80 of the name, which must reach this gateway",
  },
  {
    value: "tls-alpn-01",
    label: "TLS (tls-alpn-01)",
    text: "The CA connects to port 443 of the name, which must reach this gateway",
  },
  {
    value: "dns-01",
    label: "DNS (dns-01)",
    text: "A DNS provider writes a record; for wildcard names and names that the Internet cannot reach",
  },
] as const;

export function AcmeFields({ form, isNew }: DomainsFieldProps) {
  const { challenge, is_on_demand: isOnDemand } = form.values;
  return (
    <>
      <Section title="Names" text="Names that the certificate covers.">
        <Names form={form} isNew={isNew} />
      </Section>
      <Section title="Issuance">
        <Stack>
          <Accounts form={form} />
          <Radio.Group
            label="Challenge"
            {...form.getInputProps("challenge")}
            onChange={(value) => {
              form.setFieldValue("challenge", value as CertificateValues["challenge"]);
              form.clearFieldError("domains");
            }}
          >
            <Stack gap={8} mt={6}>
              {challenges
                .filter(({ value }) => !isOnDemand || value !== "dns-01" || challenge === value)
                .map(({ value, label, text }) => (
                  <Radio key={value} value={value} label={label} description={text} />
                ))}
            </Stack>
          </Radio.Group>
          {challenge === "dns-01" && <Provider form={form} />}
        </Stack>
      </Section>
      <Advanced form={form} />
    </>
  );
}

function Names({ form, isNew }: DomainsFieldProps) {
  const { domains, challenge, is_on_demand: isOnDemand } = form.values;
  return (
    <Stack gap="sm">
      <Switch
        label="On demand"
        description="Requested at the first TLS handshake for a name, such as domains of your customers"
        {...form.getInputProps("is_on_demand", { type: "checkbox" })}
      />
      {isOnDemand ? (
        <>
          <ListField
            label="Allowed names"
            description="*.customers.example.com matches every name one level below"
            required
            placeholder="*.customers.example.com"
            {...form.getInputProps("on_demand.hosts")}
          />
          <TextInput
            label="Permission URL"
            description="Called with ?domain=NAME; the gateway requests the certificate only after status 200. Empty: every allowed name"
            placeholder="http://127.0.0.1:3000/may-have-https"
            {...form.getInputProps("on_demand.ask_url")}
          />
        </>
      ) : (
        <>
          <DomainsField form={form} isNew={isNew} example="shop.example.com" />
          {domains.slice(0, 5).map((domain) => (
            <DomainChecks
              key={domain}
              domain={domain}
              names={challenge === "http-01" ? ["address", "port_80", "caa"] : ["caa"]}
            />
          ))}
        </>
      )}
    </Stack>
  );
}

function Accounts({ form }: CertificateFieldsProps) {
  const { data } = useResourceList("acme/accounts");
  if (data !== undefined && data.length === 0)
    return (
      <Can needs="editor">
        <AccountOffer />
      </Can>
    );
  return (
    <MultiSelect
      label="Accounts"
      description="Used in this order: if one CA fails, the next is tried. Empty: the oldest account"
      placeholder={form.values.acme_account_ids.length === 0 ? "The oldest account" : ""}
      data={(data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      clearable
      {...form.getInputProps("acme_account_ids")}
    />
  );
}

function Provider({ form }: CertificateFieldsProps) {
  const { data } = useResourceList("dns-providers");
  return (
    <Select
      label="DNS provider"
      description="Empty: the one with the longest matching zone"
      placeholder={
        data?.length === 0 ? "No DNS provider yet: add one first" : "Longest matching zone"
      }
      data={(data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      clearable
      {...form.getInputProps("dns_provider_id")}
    />
  );
}

function Advanced({ form }: CertificateFieldsProps) {
  return (
    <FoldedSection
      title="Advanced"
      fields={["key_type", "profile", "preferred_chain", "reuse_key"]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Select
          label="Private key"
          description="RSA only for very old clients"
          data={[
            { value: "ecdsa", label: "ECDSA (P-256)" },
            { value: "rsa", label: "RSA (2048 bits)" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("key_type")}
        />
        <TextInput
          label="Profile"
          description="If the CA has several, such as shortlived"
          {...form.getInputProps("profile")}
        />
        <TextInput
          label="Preferred chain"
          description="Common name of its root issuer"
          {...form.getInputProps("preferred_chain")}
        />
        <Switch
          label="Reuse the key"
          description="Renewals use the same private key"
          {...form.getInputProps("reuse_key", { type: "checkbox" })}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}
