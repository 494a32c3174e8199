// Settings fields for management access and trusted proxies.
import { Alert, Stack, Text, TextInput } from "@mantine/core";
import { useStatus } from "../../api/queries.ts";
import { ListField } from "../../parts/fields.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { SettingsFieldsProps } from "./settings-page.tsx";

interface ManagementProps extends SettingsFieldsProps {
  /** Networks that may use the management API now. */
  readonly inEffect: readonly string[];
}

export function ManagementFields({ form, inEffect }: ManagementProps) {
  const { data: status } = useStatus();
  const isLocal = status?.management_access === "local";
  return (
    <Section title="Management" text="This web UI and the API behind it.">
      <Stack>
        <TextInput
          label="Public address"
          description="URL of this UI. Single sign-on redirects to it, alerts link to it, and with https:// the session cookie is Secure. Empty: none"
          placeholder="https://gateway.example.com"
          {...form.getInputProps("public_url")}
        />
        <ListField
          label="Allowed networks"
          description="The gateway rejects clients from other networks. Empty: the networks of --admin-allow"
          placeholder="10.0.0.0/8"
          {...form.getInputProps("admin_allowed_cidrs")}
        />
        {form.values.admin_allowed_cidrs.length === 0 && (
          <Text size="sm" c="dimmed" mt={-8}>
            {inEffect.length > 0 ? (
              <>
                In effect: <span className="mono">{inEffect.join(", ")}</span>
              </>
            ) : isLocal ? (
              "The gateway listens on loopback only, so no network is required."
            ) : (
              "No network is allowed, so other machines cannot reach it."
            )}
          </Text>
        )}
        {form.values.admin_allowed_cidrs.length > 0 && (
          <Alert color="yellow" py="xs">
            Include your own network. On the machine itself, 127.0.0.1 and ::1 need to be allowed
            too. There, <code>sluice reset-admin-networks</code> restores access.
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
      text="A load balancer or CDN in front of this gateway passes client addresses in X-Forwarded-For."
    >
      <ListField
        label="Trusted proxies"
        description="Addresses and networks whose X-Forwarded-* headers are trusted, on every listener. Empty: none. Never trust a network that clients connect from"
        placeholder="192.0.2.0/24"
        {...form.getInputProps("trusted_proxies")}
      />
    </Section>
  );
}
