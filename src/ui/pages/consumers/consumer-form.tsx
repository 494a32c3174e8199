// The form of a consumer, with its credentials and plugins; knows no secret.
import { Alert, Button, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import type { Read, Write } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { ListField, TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { StatusBadge } from "../../parts/status.tsx";
import { ConsumerPlugins } from "./consumer-plugins.tsx";
import { CredentialsSection } from "./credentials-section.tsx";

type Consumer = Read<"consumers">;
type ConsumerValues = Omit<Consumer, "id" | "created_at" | "updated_at" | "custom_id"> & {
  readonly custom_id: string;
};

const LIST = pagePath("consumers");

const toValues = (consumer: Partial<Consumer>): ConsumerValues => ({
  username: consumer.username ?? "",
  custom_id: consumer.custom_id ?? "",
  groups: consumer.groups ?? [],
  enabled: consumer.enabled ?? true,
  tags: consumer.tags ?? [],
  description: consumer.description ?? "",
});

const toBody = ({ custom_id: other, ...rest }: ConsumerValues): Write<"consumers"> => ({
  ...rest,
  custom_id: other === "" ? null : other,
});

const PRINTABLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

const rules = {
  username: (value: string) =>
    value === ""
      ? "Name is required"
      : PRINTABLE.test(value)
        ? null
        : "Must be printable ASCII, without leading or trailing spaces",
  custom_id: (value: string) =>
    value === "" || PRINTABLE.test(value)
      ? null
      : "Must be printable ASCII, without leading or trailing spaces",
  groups: (value: readonly string[]) =>
    value.every((group) => /^[\x21-\x2b\x2d-\x7e]+$/.test(group))
      ? null
      : "Groups must not contain spaces or commas",
};

export function ConsumerForm({ source, template }: FormStart<Consumer>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  // The custom id is unique.
  const { custom_id: _, ...clone } = template;
  const { form, ...rest } = useResourceForm<"consumers", ConsumerValues>({
    resource: "consumers",
    source,
    template: clone,
    toValues,
    toBody,
    validate: rules,
    onSaved: ({ id }) => navigate(pagePath("consumers", id), { replace: true }),
  });
  const consumer = source?.value ?? null;
  return (
    <FormPage
      title={consumer === null ? "New consumer" : consumer.username}
      text={consumer === null ? "A user or program that calls APIs behind the gateway." : undefined}
      parent={{ href: LIST, label: "Consumers" }}
      form={rest}
      needs="editor"
      isNew={consumer === null}
      actions={
        consumer !== null && (
          <>
            {!consumer.enabled && <StatusBadge state="disabled" />}
            <Can needs="editor">
              <Button
                variant="light"
                color="red"
                onClick={() => setPendingDelete([toPendingDelete(consumer)])}
              >
                Delete
              </Button>
            </Can>
          </>
        )
      }
    >
      {consumer === null ? (
        <Alert color="blue" mb="md">
          Save first, then add credentials.
        </Alert>
      ) : (
        <CredentialsSection consumer={consumer} />
      )}
      <BasicFields form={form} />
      {consumer !== null && <ConsumerPlugins consumer={consumer} />}
      <ConfirmDelete
        resource="consumers"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function BasicFields({ form }: { readonly form: UseFormReturnType<ConsumerValues> }) {
  return (
    <Section title="Consumer">
      <Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="Username"
            description="Identifies the consumer in logs and in headers to targets"
            placeholder="alice"
            required
            {...form.getInputProps("username")}
          />
          <TextInput
            label="Custom ID"
            description="Its id in another system, such as a customer number"
            placeholder="C-1042"
            {...form.getInputProps("custom_id")}
          />
        </SimpleGrid>
        <ListField
          label="Groups"
          description="Groups that rules refer to: the plugin acl allows or denies groups"
          placeholder={form.values.groups.length === 0 ? "staff" : ""}
          {...form.getInputProps("groups")}
        />
        <TagsField
          label="Tags"
          description="Labels for search and filters"
          {...form.getInputProps("tags")}
        />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
        <Switch
          label="Enabled"
          description="Off: the gateway rejects its credentials"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}
