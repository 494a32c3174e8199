// The form of single sign-on: provider, client, roles, test.
import { Button, Group, Paper, Stack, Switch, Text } from "@mantine/core";
import { useContext, useState } from "react";
import { toMessage } from "../../api/error.ts";
import { ReadOnlyContext, useRead, type Versioned } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Can, HelpText, Section } from "../../parts/page-layout.tsx";
import { CopyableValue } from "../../parts/secret-once.tsx";
import { AdvancedFields } from "./advanced-fields.tsx";
import { ClientFields, type SsoFieldsProps } from "./client-fields.tsx";
import { UserFields } from "./user-fields.tsx";
import { ConnectionTest } from "./connection-test.tsx";
import type { Sso } from "./sso-values.ts";
import { useSsoForm } from "./use-sso-form.tsx";

const CALLBACK = "/api/v1/auth/sso/callback";

export function SsoForm({ source }: { readonly source: Versioned<Sso> }) {
  const { form, failure, prompts, isSaving, isDirty, save } = useSsoForm(source);
  const isReadOnly = useContext(ReadOnlyContext);
  const [testedAt, setTestedAt] = useState<number | null>(null);
  const test = async () => {
    if (!isDirty || (await save())) setTestedAt(Date.now());
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      noValidate
      aria-label="Single sign-on"
    >
      <RedirectAddress />
      <fieldset disabled={isReadOnly} style={{ border: 0, margin: 0, padding: 0, minWidth: 0 }}>
        <ClientFields form={form} isSecretSet={source.value.client_secret_set} />
        <UserFields form={form} />
        <AdvancedFields form={form} />
        <StatusFields form={form} />
      </fieldset>
      {testedAt !== null && <ConnectionTest run={testedAt} />}
      <Paper withBorder p="sm" pos="sticky" bottom={8} style={{ zIndex: 5 }}>
        <Stack gap="sm">
          {failure !== null && <ErrorPanel error={failure} title="Not saved" />}
          <Group justify="flex-end">
            <Button variant="default" loading={isSaving} onClick={() => void test()}>
              {isDirty ? "Save and test" : "Test the connection"}
            </Button>
            <Can needs="admin">
              <Button type="submit" loading={isSaving} disabled={!isDirty}>
                Save
              </Button>
            </Can>
          </Group>
        </Stack>
      </Paper>
      {prompts}
    </form>
  );
}

function StatusFields({ form }: SsoFieldsProps) {
  return (
    <Section title="Status">
      <Switch
        label="Enabled"
        description="Turn it on after a successful test. Open sign-in pages show the button after a reload"
        {...form.getInputProps("enabled", { type: "checkbox" })}
      />
    </Section>
  );
}

/** The redirect URL to register at the provider. */
function RedirectAddress() {
  const settings = useRead<Schemas["Settings"]>("settings");
  const publicUrl = settings.data?.value.public_url ?? null;
  const base = (publicUrl ?? location.origin).replace(/\/$/, "");
  return (
    <Section
      title="Redirect URL"
      text="Register a confidential client with authorization code flow and this redirect URL at the provider."
    >
      <Stack gap="xs">
        <CopyableValue value={`${base}${CALLBACK}`} label="the redirect URL" />
        {publicUrl === null && settings.data !== undefined && (
          <HelpText>
            Derived from the URL of this page. Set the public address in the gateway settings if
            users have another one.
          </HelpText>
        )}
        {settings.error !== null && (
          <Text size="sm" c="red">
            {toMessage(settings.error)}
          </Text>
        )}
      </Stack>
    </Section>
  );
}
