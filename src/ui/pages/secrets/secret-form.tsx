// The form of a secret: name, write-only value, and uses; shows no stored value.
import {
  Anchor,
  Button,
  Code,
  List,
  PasswordInput,
  Stack,
  Textarea,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import type { Read, Write } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, HelpText, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { useSecretUses } from "./secret-uses.ts";

type Secret = Read<"secrets">;

interface SecretValues {
  readonly name: string;
  readonly value: string;
  readonly tags: string[];
  readonly description: string;
}

const LIST = pagePath("secrets");

/** The value is write-only, so the input starts empty. */
const toValues = (secret: Partial<Secret>): SecretValues => ({
  name: secret.name ?? "",
  value: "",
  tags: secret.tags ?? [],
  description: secret.description ?? "",
});

const toBody = ({ value, ...rest }: SecretValues): Write<"secrets"> => ({
  ...rest,
  ...(value === "" ? {} : { value }),
});

const ruleOfName = (value: string) =>
  value.trim() === ""
    ? "Name is required"
    : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
      ? null
      : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit";

export function SecretForm({ source, template }: FormStart<Secret>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const secret = source?.value ?? null;
  const isNew = secret === null;
  const { form, ...rest } = useResourceForm<"secrets", SecretValues>({
    resource: "secrets",
    source,
    template,
    toValues,
    toBody,
    secrets: ["value"],
    validate: {
      name: ruleOfName,
      value: (value) => (isNew && value === "" ? "Value is required" : null),
    },
    onSaved: ({ id }) => navigate(pagePath("secrets", id), { replace: true }),
  });
  return (
    <FormPage
      title={isNew ? "New secret" : secret.name}
      text={
        isNew ? (
          "Stored encrypted. Other objects reference it by name."
        ) : (
          <>
            Changed <RelativeTime at={secret.updated_at} />
          </>
        )
      }
      parent={{ href: LIST, label: "Secrets" }}
      form={rest}
      needs="admin"
      isNew={isNew}
      actions={
        !isNew && (
          <Can needs="admin">
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(secret)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
    >
      <SecretFields form={form} isNew={isNew} />
      {!isNew && <UsesSection name={secret.name} />}
      <ConfirmDelete
        resource="secrets"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

interface FieldsProps {
  readonly form: UseFormReturnType<SecretValues>;
  readonly isNew: boolean;
}

function SecretFields({ form, isNew }: FieldsProps) {
  return (
    <Section title="Secret">
      <Stack>
        <TextInput
          label="Name"
          description={
            isNew ? "References use this name" : "Cannot change while objects reference the secret"
          }
          placeholder="idp-client"
          required
          {...form.getInputProps("name")}
        />
        <PasswordInput
          label={isNew ? "Value" : "New value"}
          description={
            isNew
              ? "Write-only: store a copy in your password manager"
              : "All references use the new value at once"
          }
          placeholder={isNew ? "" : "Unchanged; type to replace it"}
          autoComplete="new-password"
          required={isNew}
          {...form.getInputProps("value")}
        />
        <TagsField
          label="Tags"
          description="Labels for search and filters"
          {...form.getInputProps("tags")}
        />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
      </Stack>
    </Section>
  );
}

function UsesSection({ name }: { readonly name: string }) {
  const uses = useSecretUses()(name);
  return (
    <Section title="Used by">
      {uses.length === 0 ? (
        <HelpText>
          No references yet. In secret fields choose “Use a stored secret”; in the API write{" "}
          <Code>{`{"$secret": "${name}"}`}</Code>.
        </HelpText>
      ) : (
        <List size="sm" spacing={4}>
          {uses.map(({ label, href }) => (
            <List.Item key={href}>
              <Anchor component={Link} href={href} size="sm">
                {label}
              </Anchor>
            </List.Item>
          ))}
        </List>
      )}
    </Section>
  );
}
