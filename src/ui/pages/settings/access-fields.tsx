// Fields of the settings that say who may reach the gateway's management and whose word on client addresses counts.
import { Alert, Stack, Text, TextInput } from "@mantine/core";
import { useStatus } from "../../api/queries.ts";
import { ListField } from "../../parts/fields.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { SettingsFieldsProps } from "./settings-page.tsx";

interface ManagementProps extends SettingsFieldsProps {
  /** Networks that may use the management API now. */
  readonly inForce: readonly string[];
}

export function ManagementFields({ form, inForce }: ManagementProps) {
  const { data: status } = useStatus();
  const isLocal = status?.management_access === "local";
  return (
    <Section title="Management" text="This web UI and the API behind it.">
      <Stack>
        <TextInput
          label="Public address"
          description="Where people reach this UI. Single sign-on comes back to it, alerts name it, and with https:// the session cookie is sent over TLS only. Empty: no address of its own"
          placeholder="https://gateway.example.com"
          {...form.getInputProps("public_url")}
        />
        <ListField
          label="Networks that may use it"
          description="Clients from other networks are refused, whatever they sign in with. Empty: the networks of --admin-allow"
          placeholder="10.0.0.0/8"
          {...form.getInputProps("admin_allowed_cidrs")}
        />
        {form.values.admin_allowed_cidrs.length === 0 && (
          <Text size="sm" c="dimmed" mt={-8}>
            {inForce.length > 0 ? (
              <>
                In force: <span className="mono">{inForce.join(", ")}</span>
              </>
            ) : isLocal ? (
              "It listens for this machine only, so no network needs to be named."
            ) : (
              "No network is named, so other machines do not reach it."
            )}
          </Text>
        )}
        {form.values.admin_allowed_cidrs.length > 0 && (
          <Alert color="yellow" py="xs">
            Include the network that you come from. On the machine itself 127.0.0.1 and ::1 are
            addresses like others. There, <code>sluice reset-admin-networks</code> opens it again.
          </Alert>
        )}
      </Stack>
    </Section>
  );
}

export function ProxyFields({ form }: SettingsFieldsProps) {
  return (
    <Section
      title="Proxies in front"
      text="A load balancer or CDN before this gateway hides the addresses of clients, and tells them in X-Forwarded-For."
    >
      <ListField
        label="Trusted proxies"
        description="Addresses and networks whose X-Forwarded-* fields are believed, on every listener. Empty: none is, and the client is who connects. Never trust a network that clients come from"
        placeholder="192.0.2.0/24"
        {...form.getInputProps("trusted_proxies")}
      />
    </Section>
  );
}
