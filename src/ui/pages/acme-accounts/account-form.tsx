// The form of an account at a certificate authority: which one, who you are, trials; changes its key when asked.
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
import { ConfirmDelete, type Doomed, toDoomed } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { SecretHint } from "../../parts/secret-hint.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import {
  type AccountValues,
  authorities,
  authorityOf,
  rules,
  toBody,
  toValues,
} from "./account-values.ts";

const LIST = pagePath("acme-accounts");

interface FieldsProps {
  readonly form: UseFormReturnType<AccountValues>;
}

export function AccountForm({ source, template }: FormStart<Read<"acme/accounts">>) {
  const [, navigate] = useLocation();
  const [doomed, setDoomed] = useState<readonly Doomed[] | null>(null);
  const { form, ...rest } = useResourceForm<"acme/accounts", AccountValues>({
    resource: "acme/accounts",
    ...{ source, template, toValues, toBody, validate: rules, secrets: ["eab_hmac_key"] },
    onSaved: ({ id }) => navigate(pagePath("acme-accounts", id), { replace: true }),
  });
  const account = source?.value ?? null;
  return (
    <FormPage
      title={account === null ? "New ACME account" : account.name}
      text={account === null ? "Whom the gateway orders certificates from." : undefined}
      parent={{ href: LIST, label: "ACME accounts" }}
      form={rest}
      needs="editor"
      isNew={account === null}
      actions={
        account !== null && (
          <Can needs="editor">
            <RotateButton account={account} />
            <Button variant="light" color="red" onClick={() => setDoomed([toDoomed(account)])}>
              Delete
            </Button>
          </Can>
        )
      }
    >
      <AuthorityFields form={form} isNew={account === null} />
      <PersonFields form={form} hasKey={(account?.eab_key_id ?? null) !== null} />
      <MoreFields form={form} />
      <ConfirmDelete
        resource="acme/accounts"
        objects={doomed}
        onClose={() => setDoomed(null)}
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
    done: () => `ACME account ${name} has another key`,
  });
  const ask = () =>
    modals.openConfirmModal({
      title: `Change the key of ${name}?`,
      children: (
        <Text size="sm">
          The authority knows the account by the new key only. Certificates stay as they are. It is
          refused while something is being ordered.
        </Text>
      ),
      labels: { confirm: "Change the key", cancel: "Cancel" },
      onConfirm: () => mutate(),
    });
  return (
    <Button variant="default" loading={isPending} onClick={ask}>
      Change the key
    </Button>
  );
}

const OTHER = "other";

function AuthorityFields({ form, isNew }: FieldsProps & { readonly isNew: boolean }) {
  const { directory_url: url, staging, name } = form.values;
  const known = authorityOf(url);
  const choose = (value: string | null) => {
    const authority = authorities.find((one) => one.url === value);
    form.setFieldValue("directory_url", authority?.url ?? "https://");
    const isFollowing = name === "" || authorities.some(({ label }) => nameFor(label) === name);
    if (isNew && isFollowing)
      form.setFieldValue("name", authority === undefined ? "" : nameFor(authority.label));
  };
  const hasOwnTrials = known?.hasTrials === true;
  return (
    <Section title="Authority" text="Who signs the certificates.">
      <Stack>
        <Select
          label="Which one"
          description={known?.text ?? "One of your own, or any other that speaks ACME"}
          data={[
            ...authorities.map(({ label, url: value }) => ({ value, label })),
            { value: OTHER, label: "Another one" },
          ]}
          value={known?.url ?? OTHER}
          allowDeselect={false}
          onChange={choose}
        />
        {known === undefined && <OtherAuthority form={form} />}
        <Switch
          label="For trials"
          description="Certificates that nobody trusts, but no limits: to try things out first. Switch it off afterwards, and real ones are ordered at once"
          {...form.getInputProps("staging", { type: "checkbox" })}
        />
        {staging && !hasOwnTrials && (
          <TextInput
            label="Directory for trials"
            required
            placeholder="https://"
            {...form.getInputProps("staging_directory_url")}
          />
        )}
      </Stack>
    </Section>
  );
}

/** One of your own, or any other that speaks ACME. */
function OtherAuthority({ form }: FieldsProps) {
  return (
    <>
      <TextInput
        label="Directory"
        description="Address that the authority gives for ACME"
        placeholder="https://ca.home.arpa/acme/acme/directory"
        required
        {...form.getInputProps("directory_url")}
      />
      <Textarea
        label="Who signs the directory's own certificate"
        description="PEM, for an authority in your own network. Empty: the usual ones"
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

function PersonFields({ form, hasKey }: FieldsProps & { readonly hasKey: boolean }) {
  const { directory_url: url, eab_key_id: keyId } = form.values;
  const needsBinding = authorityOf(url)?.needsBinding ?? null;
  return (
    <Section title="You">
      <Stack>
        <TextInput
          label="E-mail address"
          description="Where the authority may write to, for example before a certificate runs out"
          type="email"
          placeholder="you@example.com"
          {...form.getInputProps("email")}
        />
        <Checkbox
          label="I agree to the authority's terms of service"
          {...form.getInputProps("terms_agreed", { type: "checkbox" })}
        />
        {(needsBinding !== false || keyId !== "") && (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="EAB key id"
              description={
                needsBinding === true
                  ? "This authority asks for an external account binding"
                  : "Only where the authority asks for an external account binding"
              }
              {...form.getInputProps("eab_key_id")}
            />
            <PasswordInput
              label="EAB HMAC key"
              description="Stored encrypted and never shown. Empty: it stays as it is"
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
            description="Off: nothing is ordered with it"
            {...form.getInputProps("enabled", { type: "checkbox" })}
          />
        </Stack>
      </Section>
      <FoldedSection
        title="Advanced"
        text="For certificates that say nothing else."
        fields={["profile", "preferred_chain"]}
        errors={form.errors}
      >
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
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
        </SimpleGrid>
      </FoldedSection>
    </>
  );
}
