// HTTPS fields of an application; can create an ACME account.
import { Anchor, Radio, Select, Stack, Switch, Text } from "@mantine/core";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can } from "../../parts/page-layout.tsx";
import { AccountOffer } from "../acme-accounts/account-offer.tsx";
import type { ApplicationFieldsProps } from "./application-fields.tsx";
import { type ApplicationValues, isDomain, isPublicName } from "./application-values.ts";
import { CheckLine, DomainChecks } from "./live-checks.tsx";

type Mode = ApplicationValues["https"]["mode"];

const modes: readonly { readonly value: Mode; readonly label: string; readonly text: string }[] = [
  {
    value: "auto",
    label: "Automatic",
    text: "An issued certificate for public names, one of the local CA for private names",
  },
  {
    value: "local_ca",
    label: "Local CA",
    text: "Signed by this gateway, with the redirect: for devices that trust its root",
  },
  {
    value: "acme",
    label: "Always request",
    text: "Also for private names, from your own CA",
  },
  {
    value: "certificate",
    label: "Existing certificate",
    text: "An uploaded or issued certificate",
  },
  { value: "off", label: "No HTTPS", text: "Plain HTTP, not encrypted" },
];

/** The certificate mode, and everything that prevents issuance. */
export function HttpsFields({ form }: ApplicationFieldsProps) {
  const { https } = form.values;
  return (
    <Stack gap="md">
      <Radio.Group
        label="Certificate"
        value={https.mode}
        onChange={(value) => form.setFieldValue("https.mode", value as Mode)}
        error={form.errors["https.mode"]}
      >
        <Stack gap={8} mt={6}>
          {modes.map(({ value, label, text }) => (
            <Radio key={value} value={value} label={label} description={text} />
          ))}
        </Stack>
      </Radio.Group>
      {https.mode === "certificate" && <CertificateField form={form} />}
      <HttpsForecast form={form} />
      {https.mode !== "off" && (
        <>
          <Switch
            label="Redirect HTTP to HTTPS"
            description="As soon as a trusted certificate exists"
            {...form.getInputProps("https.redirect", { type: "checkbox" })}
          />
          <Switch
            label="HSTS"
            description="Browsers use HTTPS only for one year, which cannot be undone. Turn it on when HTTPS works"
            {...form.getInputProps("https.hsts", { type: "checkbox" })}
          />
        </>
      )}
    </Stack>
  );
}

function CertificateField({ form }: ApplicationFieldsProps) {
  const { data } = useResourceList("certificates");
  return (
    <Select
      label="Certificate to use"
      description="Must cover all domains"
      placeholder={data?.length === 0 ? "No certificates yet" : "Choose"}
      data={(data ?? []).map(({ id, name, domains }) => ({
        value: id,
        label: domains.length > 0 ? `${name} (${domains.join(", ")})` : name,
      }))}
      searchable
      required
      {...form.getInputProps("https.certificate_id")}
    />
  );
}

/** The expected result for the entered domains, and what prevents issuance. */
function HttpsForecast({ form }: ApplicationFieldsProps) {
  const { https, domains } = form.values;
  const accounts = useResourceList("acme/accounts");
  const providers = useResourceList("dns-providers");
  if (https.mode === "off" || https.mode === "certificate") return null;
  const named = domains.map((domain) => domain.trim()).filter(isDomain);
  const isOrdered = (domain: string) =>
    https.mode === "acme" || (https.mode === "auto" && isPublicName(domain));
  const ordered = named.filter(isOrdered);
  const isOffered = accounts.data !== undefined && !accounts.data.some(({ enabled }) => enabled);
  return (
    <Stack gap="sm">
      {named
        .filter((domain) => !ordered.includes(domain))
        .map((domain) => (
          <CheckLine key={domain} status="ok">
            <b>{domain}</b> gets a certificate of the{" "}
            <Anchor component={Link} href={pagePath("local-ca")} size="sm" underline="always">
              local CA
            </Anchor>
            . Browsers show a warning unless they trust its root.
          </CheckLine>
        ))}
      {ordered.length > 0 && isOffered && (
        <Can needs="editor">
          <AccountOffer />
        </Can>
      )}
      {ordered.map((domain) =>
        domain.startsWith("*.") ? (
          <WildcardForecast key={domain} domain={domain} providers={providers.data} />
        ) : (
          <Stack key={domain} gap={4}>
            <Text size="sm" fw={600}>
              Can {domain} get a certificate?
            </Text>
            <DomainChecks domain={domain} names={["address", "port_80", "caa"]} />
          </Stack>
        ),
      )}
    </Stack>
  );
}

interface WildcardForecastProps {
  readonly domain: string;
  readonly providers: readonly Schemas["DnsProvider"][] | undefined;
}

function WildcardForecast({ domain, providers }: WildcardForecastProps) {
  if (providers === undefined) return null;
  const usable = providers.filter(({ enabled }) => enabled);
  if (usable.length > 0)
    return (
      <CheckLine status="ok">
        <b>{domain}</b> uses the DNS challenge of {usable.map(({ name }) => name).join(", ")}.
      </CheckLine>
    );
  return (
    <CheckLine status="warning">
      <b>{domain}</b> requires a DNS provider. It is served with a self-signed certificate until you{" "}
      <Anchor component={Link} href={pagePath("dns-providers", "new")} size="sm" underline="always">
        add one
      </Anchor>
      ; the gateway then requests the certificate.
    </CheckLine>
  );
}
