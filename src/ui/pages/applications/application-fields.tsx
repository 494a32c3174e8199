// The form fields of an application: domains and upstream; sends nothing.
import {
  Box,
  Group,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { AddButton, HostPortField, RemoveButton } from "../../parts/fields.tsx";
import { hostOf, serverOf, toUrl } from "../../parts/lenient-url.ts";
import {
  type ApplicationValues,
  domainProblem,
  newServer,
  sentHost,
} from "./application-values.ts";
import { DomainChecks, UpstreamCheck } from "./live-checks.tsx";

export interface ApplicationFieldsProps {
  readonly form: UseFormReturnType<ApplicationValues>;
}

interface DomainFieldsProps extends ApplicationFieldsProps {
  /** Called with the new value of the first domain. */
  readonly onFirst?: (domain: string) => void;
}

/** The index is the key: typed strings have no other identity. */
const keyAt = (index: number): string => `domain ${index}`;

/** One input per domain, with the gateway's checks below. */
export function DomainFields({ form, onFirst }: DomainFieldsProps) {
  const { domains } = form.values;
  const isTried = form.errors["domains"] !== undefined;
  const set = (index: number, typed: string) => {
    const text = hostOf(typed);
    form.clearFieldError("domains");
    form.setFieldValue(`domains.${index}`, text);
    if (index === 0) onFirst?.(text);
  };
  return (
    <Stack gap="sm">
      {domains.map((domain, index) => {
        const problem = domain.trim() === "" && !isTried ? null : domainProblem(domains, index);
        return (
          <Stack key={keyAt(index)} gap={4}>
            <Group gap={6} wrap="nowrap" align="flex-start">
              <TextInput
                label={index === 0 ? "Domain" : `Domain ${index + 1}`}
                description={index === 0 ? "Host name of the application" : undefined}
                placeholder="shop.example.com"
                required={index === 0}
                style={{ flex: 1 }}
                inputMode="url"
                autoCapitalize="none"
                spellCheck={false}
                {...form.getInputProps(`domains.${index}`)}
                onChange={(event) => set(index, event.currentTarget.value)}
                error={form.errors[`domains.${index}`] ?? problem}
              />
              {index > 0 && (
                <Box pt={26}>
                  <RemoveButton
                    label={`Remove domain ${index + 1}`}
                    onClick={() => form.removeListItem("domains", index)}
                  />
                </Box>
              )}
            </Group>
            {problem === null && <DomainChecks domain={domain} names={["address"]} />}
          </Stack>
        );
      })}
      <AddButton label="Add a domain" onClick={() => form.insertListItem("domains", "")} />
    </Stack>
  );
}

/** One upstream URL, or several servers. */
export function UpstreamFields({ form }: ApplicationFieldsProps) {
  const { runs_on: runsOn, upstream } = form.values;
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Number of servers"
        value={runsOn}
        onChange={(value) => form.setValues(withKind(form.values, value as Kind))}
        data={[
          { value: "address", label: "One server" },
          { value: "servers", label: "Several servers" },
          { value: "redirect", label: "Redirect" },
        ]}
        style={{ alignSelf: "flex-start" }}
      />
      {runsOn === "address" ? (
        <>
          <TextInput
            label="Upstream URL"
            description="http:// or https://, host name or IP address, port"
            placeholder="http://10.0.0.5:3000"
            required
            inputMode="url"
            autoCapitalize="none"
            spellCheck={false}
            {...form.getInputProps("upstream")}
            onBlur={() => form.setFieldValue("upstream", toUrl(upstream))}
          />
          <UpstreamCheck upstream={toUrl(upstream)} host={sentHost(form.values)} />
        </>
      ) : runsOn === "servers" ? (
        <ServerFields form={form} />
      ) : (
        <RedirectField form={form} />
      )}
      {runsOn !== "redirect" && <HostHeaderFields form={form} />}
    </Stack>
  );
}

type Kind = ApplicationValues["runs_on"];

/** A redirect of all requests is a policy, which goes when there is an upstream again. */
const withKind = (values: ApplicationValues, kind: Kind): Partial<ApplicationValues> => {
  if (kind === values.runs_on) return {};
  const { policies } = values;
  if (kind === "redirect")
    return { runs_on: kind, policies: { ...policies, redirect: { from: "/", to: "" } } };
  return values.runs_on === "redirect"
    ? { runs_on: kind, policies: { ...policies, redirect: null } }
    : { runs_on: kind };
};

function RedirectField({ form }: ApplicationFieldsProps) {
  const { value, ...input } = form.getInputProps("policies.redirect.to");
  return (
    <TextInput
      label="Redirect to"
      description="For all requests; their path and query follow"
      placeholder="https://example.com"
      required
      inputMode="url"
      autoCapitalize="none"
      spellCheck={false}
      value={value ?? ""}
      {...input}
    />
  );
}

const HOST_HEADERS = [
  { value: "preserve", label: "The client's" },
  { value: "target", label: "The upstream's" },
  { value: "name", label: "A name" },
];

function HostHeaderFields({ form }: ApplicationFieldsProps) {
  const { host_header: value } = form.values;
  const isWord = value === "preserve" || value === "target";
  const kind = value === null ? "service" : isWord ? value : "name";
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <Select
        label="Host header"
        description="Most applications need the client's"
        data={
          kind === "service"
            ? [{ value: "service", label: "As set on its service" }, ...HOST_HEADERS]
            : HOST_HEADERS
        }
        allowDeselect={false}
        value={kind}
        onChange={(next) =>
          form.setFieldValue("host_header", next === "service" ? null : next === "name" ? "" : next)
        }
      />
      {kind === "name" && (
        <TextInput
          label="Name in the Host header"
          description="For applications that respond to one name only"
          placeholder="app.internal"
          required
          {...form.getInputProps("host_header")}
        />
      )}
    </SimpleGrid>
  );
}

function ServerFields({ form }: ApplicationFieldsProps) {
  const { targets } = form.values;
  const setServer = (index: number, text: string) => {
    const { host, port } = serverOf(text, targets[index]?.host ?? "");
    form.setFieldValue(`targets.${index}.host`, host);
    if (port !== null) form.setFieldValue(`targets.${index}.port`, port);
  };
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        Requests are distributed by weight over plain HTTP, and unhealthy servers are ejected.
      </Text>
      {targets.map((target, index) => (
        <Stack
          key={keyAt(index)}
          gap={4}
          component="fieldset"
          bd={0}
          p={0}
          m={0}
          aria-label={`Server ${index + 1}`}
        >
          <Group align="flex-start" gap="sm" wrap="nowrap">
            <Box style={{ flex: "1 1 12rem", minWidth: 0 }}>
              <HostPortField
                label="Host"
                host={{
                  ...form.getInputProps(`targets.${index}.host`),
                  onChange: (text) => setServer(index, text),
                }}
                port={form.getInputProps(`targets.${index}.port`)}
              />
            </Box>
            <NumberInput
              label="Weight"
              min={0}
              max={65_535}
              w={84}
              hideControls
              {...form.getInputProps(`targets.${index}.weight`)}
            />
            {targets.length > 1 && (
              <Box pt={26}>
                <RemoveButton
                  label={`Remove server ${index + 1}`}
                  onClick={() => form.removeListItem("targets", index)}
                />
              </Box>
            )}
          </Group>
          {target.host !== "" && target.port !== null && (
            <UpstreamCheck
              upstream={`http://${target.host.includes(":") ? `[${target.host}]` : target.host}:${target.port}`}
              host={sentHost(form.values)}
            />
          )}
        </Stack>
      ))}
      <AddButton label="Add a server" onClick={() => form.insertListItem("targets", newServer)} />
    </Stack>
  );
}
