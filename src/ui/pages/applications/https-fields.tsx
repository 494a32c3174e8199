// HTTPS of an application and who may reach it: which certificate, what is still missing for it; creates accounts at authorities when asked.
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
    ...{ value: "auto", label: "Automatic" },
    text: "Public names get a trusted certificate by themselves, private ones a self-signed one",
  },
  {
    ...{ value: "acme", label: "Always order one" },
    text: "Also for private names, from an authority of your own",
  },
  {
    ...{ value: "certificate", label: "One of my certificates" },
    text: "That you have uploaded or ordered already",
  },
  { ...{ value: "off", label: "No HTTPS" }, text: "Plain HTTP: anybody on the way can read along" },
];

/** Which certificate, and everything that would keep it from coming. */
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
      <HttpsOutlook form={form} />
      {https.mode !== "off" && (
        <>
          <Switch
            label="Send plain requests to HTTPS"
            description="From the moment on that there is a trusted certificate"
            {...form.getInputProps("https.redirect", { type: "checkbox" })}
          />
          <Switch
            label="Tell browsers to use HTTPS only (HSTS)"
            description="For a year, and they cannot be told otherwise. Switch it on when all works"
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
      label="Which one"
      description="It has to cover all names"
      placeholder={data?.length === 0 ? "There is none yet" : "Choose one"}
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

/** What will happen for the names that were entered, and what is in the way. */
function HttpsOutlook({ form }: ApplicationFieldsProps) {
  const { https, domains } = form.values;
  const accounts = useResourceList("acme/accounts");
  const providers = useResourceList("dns-providers");
  if (https.mode === "off" || https.mode === "certificate") return null;
  const named = domains.map((domain) => domain.trim()).filter(isDomain);
  const ordered = named.filter((domain) => https.mode === "acme" || isPublicName(domain));
  const isOffered = accounts.data !== undefined && !accounts.data.some(({ enabled }) => enabled);
  return (
    <Stack gap="sm">
      {named
        .filter((domain) => !ordered.includes(domain))
        .map((domain) => (
          <CheckLine key={domain} status="ok">
            <b>{domain}</b> is a private name: it gets a certificate that this gateway signs itself.
            Browsers warn of it until you tell them to trust it.
          </CheckLine>
        ))}
      {ordered.length > 0 && isOffered && (
        <Can needs="editor">
          <AccountOffer />
        </Can>
      )}
      {ordered.map((domain) =>
        domain.startsWith("*.") ? (
          <WildcardOutlook key={domain} domain={domain} providers={providers.data} />
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

interface WildcardOutlookProps {
  readonly domain: string;
  readonly providers: readonly Schemas["DnsProvider"][] | undefined;
}

function WildcardOutlook({ domain, providers }: WildcardOutlookProps) {
  if (providers === undefined) return null;
  const usable = providers.filter(({ enabled }) => enabled);
  if (usable.length > 0)
    return (
      <CheckLine status="ok">
        <b>{domain}</b> is proved with a DNS record by {usable.map(({ name }) => name).join(", ")}.
      </CheckLine>
    );
  return (
    <CheckLine status="warning">
      <b>{domain}</b> needs a DNS provider, and there is none. It is served with a self-signed
      certificate until you{" "}
      <Anchor component={Link} href={pagePath("dns-providers", "new")} size="sm" underline="always">
        add one
      </Anchor>
      ; the certificate is then ordered by itself.
    </CheckLine>
  );
}

/** Whom it answers. */
export function AccessFields({ form }: ApplicationFieldsProps) {
  return (
    <Radio.Group label="Who may reach it" {...form.getInputProps("access")}>
      <Stack gap={8} mt={6}>
        <Radio value="public" label="Everybody" description="Whoever can connect to this gateway" />
        <Radio
          value="private"
          label="Only private networks"
          description="Clients from 10.x, 192.168.x, 172.16–31.x, link-local addresses and this machine; others get 403"
        />
      </Stack>
    </Radio.Group>
  );
}
