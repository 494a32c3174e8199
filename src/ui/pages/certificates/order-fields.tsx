// Fields of a certificate that is ordered: names, how they are proved, from whom, and what few people change.
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
    ...{ value: "http-01", label: "Over port 80" },
    text: "The authority fetches a file from port 80 of the name, which has to lead here",
  },
  {
    ...{ value: "tls-alpn-01", label: "Over port 443" },
    text: "The authority connects to port 443 of the name, which has to lead here",
  },
  {
    ...{ value: "dns-01", label: "With a DNS record" },
    text: "A DNS provider writes a record: for *.names, and for names that nobody outside reaches",
  },
] as const;

export function OrderFields({ form, isNew }: DomainsFieldProps) {
  const { challenge, is_on_demand: isOnDemand } = form.values;
  return (
    <>
      <Section title="Names" text="That the certificate is for.">
        <Names form={form} isNew={isNew} />
      </Section>
      <Section title="How it is ordered">
        <Stack>
          <Accounts form={form} />
          <Radio.Group
            label="How you prove that the names are yours"
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
        label="For names that are not known yet"
        description="Ordered when a client asks for one, such as the domains of your customers"
        {...form.getInputProps("is_on_demand", { type: "checkbox" })}
      />
      {isOnDemand ? (
        <>
          <ListField
            label="Names that may be asked for"
            description="*.customers.example.com fits every name one level below"
            required
            placeholder="*.customers.example.com"
            {...form.getInputProps("on_demand.hosts")}
          />
          <TextInput
            label="Address that is asked first"
            description="With ?domain=NAME; only if it answers 200 is the certificate ordered. Empty: every name that fits"
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
      description="Asked in this order: when one authority fails, the next is tried. Empty: the oldest account"
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
      description="Empty: the one whose zone fits best"
      placeholder={
        data?.length === 0 ? "There is none yet: add one first" : "The one that fits best"
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
          description="Where the authority has several, such as shortlived"
          {...form.getInputProps("profile")}
        />
        <TextInput
          label="Preferred chain"
          description="Common name of the issuer at its end"
          {...form.getInputProps("preferred_chain")}
        />
        <Switch
          label="Keep the key"
          description="Renewals use the same private key"
          {...form.getInputProps("reuse_key", { type: "checkbox" })}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}
