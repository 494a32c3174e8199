// The form of an ACME account: CA, contact, staging; also rotates its key.
import {
  Button,
  Checkbox,
  PasswordInput,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { modals } from "@mantine/modals";
import { useState } from "react";
import { useLocation } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { SecretHint } from "../../parts/secret-hint.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { type AccountValues, cas, caOf, rules, toBody, toValues } from "./account-values.ts";

const LIST = pagePath("acme-accounts");

interface FieldsProps {
  readonly form: UseFormReturnType<AccountValues>;
}

export function AccountForm({ source, template }: FormStart<Read<"acme/accounts">>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const { form, ...rest } = useResourceForm<"acme/accounts", AccountValues>({
    resource: "acme/accounts",
    source,
    template,
    toValues,
    toBody,
    validate: rules,
    secrets: ["eab_hmac_key"],
    onSaved: ({ id }) => navigate(pagePath("acme-accounts", id), { replace: true }),
  });
  const account = source?.value ?? null;
  return (
    <FormPage
      title={account === null ? "New ACME account" : account.name}
      text={account === null ? "An account at a CA that issues certificates." : undefined}
      parent={{ href: LIST, label: "ACME accounts" }}
      form={rest}
      needs="editor"
      isNew={account === null}
      actions={
        account !== null && (
          <Can needs="editor">
            <RotateButton account={account} />
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(account)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
    >
      <CaFields form={form} isNew={account === null} />
      <ContactFields form={form} hasKey={(account?.eab_key_id ?? null) !== null} />
      <MoreFields form={form} />
      <ConfirmDelete
        resource="acme/accounts"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function RotateButton({ account }: { readonly account: Read<"acme/accounts"> }) {
  const { id, name } = account;
  const connection = useConnection();
  const { mutate, isPending } = useChange<Read<"acme/accounts">>({
    send: () => connection.send(`/acme/accounts/${id}/rotate-key`, { method: "POST" }),
    touches: ["acme/accounts"],
    done: () => `ACME account ${name} has a new key`,
  });
  const ask = () =>
    modals.openConfirmModal({
      title: `Rotate the key of ${name}?`,
      children: (
        <Text size="sm">
          The CA accepts only the new key for this account. Certificates are not affected. Not
          possible while a certificate is being issued.
        </Text>
      ),
      labels: { confirm: "Rotate key", cancel: "Cancel" },
      onConfirm: () => mutate(),
    });
  return (
    <Button variant="default" loading={isPending} onClick={ask}>
      Rotate key
    </Button>
  );
}

const OTHER = "other";

function CaFields({ form, isNew }: FieldsProps & { readonly isNew: boolean }) {
  const { directory_url: url, staging, name } = form.values;
  const known = caOf(url);
  const choose = (value: string | null) => {
    const ca = cas.find((one) => one.url === value);
    form.setFieldValue("directory_url", ca?.url ?? "https://");
    const isFollowing = name === "" || cas.some(({ label }) => nameFor(label) === name);
    if (isNew && isFollowing) form.setFieldValue("name", ca === undefined ? "" : nameFor(ca.label));
  };
  const hasOwnStaging = known?.hasStaging === true;
  return (
    <Section title="CA" text="The CA that issues the certificates.">
      <Stack>
        <Select
          label="CA"
          description={known?.text ?? "Your own, or any other CA that supports ACME"}
          data={[
            ...cas.map(({ label, url: value }) => ({ value, label })),
            { value: OTHER, label: "Other CA" },
          ]}
          value={known?.url ?? OTHER}
          allowDeselect={false}
          onChange={choose}
        />
        {known === undefined && <OtherCaFields form={form} />}
        <Switch
          label="Staging"
          description="Untrusted certificates with high rate limits, for tests. After you turn it off, the gateway requests trusted ones"
          {...form.getInputProps("staging", { type: "checkbox" })}
        />
        {staging && !hasOwnStaging && (
          <TextInput
            label="Staging directory"
            required
            placeholder="https://"
            {...form.getInputProps("staging_directory_url")}
          />
        )}
      </Stack>
    </Section>
  );
}

/** Your own, or any other CA that supports ACME. */
function OtherCaFields({ form }: FieldsProps) {
  return (
    <>
      <TextInput
        label="Directory"
        description="ACME directory URL of the CA"
        placeholder="https://ca.home.arpa/acme/acme/directory"
        required
        {...form.getInputProps("directory_url")}
      />
      <Textarea
        label="Trusted CAs of the directory"
        description="PEM, for a CA in your own network. Empty: the system's CAs"
        placeholder="-----BEGIN CERTIFICATE-----"
        autosize
        minRows={3}
        maxRows={10}
        spellCheck={false}
        styles={{
          input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 },
        }}
        {...form.getInputProps("ca_certificates")}
      />
    </>
  );
}

const nameFor = (label: string): string => label.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

function ContactFields({ form, hasKey }: FieldsProps & { readonly hasKey: boolean }) {
  const { directory_url: url, eab_key_id: keyId } = form.values;
  const needsBinding = caOf(url)?.needsBinding ?? null;
  return (
    <Section title="Contact">
      <Stack>
        <TextInput
          label="E-mail address"
          description="Contact for the CA, for example before a certificate expires"
          type="email"
          placeholder="you@example.com"
          {...form.getInputProps("email")}
        />
        <Checkbox
          label="I agree to the CA's terms of service"
          {...form.getInputProps("terms_agreed", { type: "checkbox" })}
        />
        {(needsBinding !== false || keyId !== "") && (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="EAB key id"
              description={
                needsBinding === true
                  ? "This CA requires an external account binding"
                  : "Only if the CA requires an external account binding"
              }
              {...form.getInputProps("eab_key_id")}
            />
            <PasswordInput
              label="EAB HMAC key"
              description="Stored encrypted and never shown. Empty: unchanged"
              autoComplete="off"
              {...form.getInputProps("eab_hmac_key")}
            />
          </SimpleGrid>
        )}
        {hasKey && <SecretHint />}
      </Stack>
    </Section>
  );
}

function MoreFields({ form }: FieldsProps) {
  return (
    <>
      <Section title="Name and notes">
        <Stack>
          <TextInput
            label="Name"
            description="Display name"
            required
            {...form.getInputProps("name")}
          />
          <TagsField
            label="Tags"
            description="Labels for search and filters"
            {...form.getInputProps("tags")}
          />
          <Textarea label="Description" autosize {...form.getInputProps("description")} />
          <Switch
            label="Enabled"
            description="Off: no certificates are requested with it"
            {...form.getInputProps("enabled", { type: "checkbox" })}
          />
        </Stack>
      </Section>
      <FoldedSection
        title="Advanced"
        text="Defaults for certificates that set nothing else."
        fields={["profile", "preferred_chain"]}
        errors={form.errors}
      >
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
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
        </SimpleGrid>
      </FoldedSection>
    </>
  );
}
