// The form of a DNS provider: type, settings, zones, and a test; the form kernel saves it.
import { Button, Select, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { useLocation } from "wouter";
import { includesRole, useRead, useRole } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { DurationField, ListField, TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, HelpText, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { SecretHint } from "../../parts/secret-hint.tsx";
import {
  createFieldOf,
  createToValues,
  emptySettings,
  type ProviderType,
  type ProviderValues,
  rules,
  toBody,
} from "./provider-values.ts";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { type ProviderFieldsProps, SettingFields } from "./setting-fields.tsx";
import { ZoneTest } from "./zone-test.tsx";

const LIST = pagePath("dns-providers");

/** The supported provider types. */
export function useProviderTypes(): readonly ProviderType[] {
  const { data } = useRead<readonly ProviderType[]>("dns-providers/types");
  return data?.value ?? [];
}

type Start = FormStart<Read<"dns-providers">>;

export function ProviderForm(start: Start) {
  const types = useProviderTypes();
  return types.length === 0 ? <FormSkeleton /> : <TypedForm {...start} types={types} />;
}

function TypedForm({
  source,
  template,
  types,
}: Start & { readonly types: readonly ProviderType[] }) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const chosen = useRef("");
  const { form, ...rest } = useResourceForm<"dns-providers", ProviderValues>({
    resource: "dns-providers",
    source,
    template,
    toValues: createToValues(types),
    toBody,
    validate: rules,
    secrets: ["secrets"],
    fieldOf: createFieldOf(types, () => chosen.current),
    onSaved: ({ id }) => navigate(pagePath("dns-providers", id), { replace: true }),
  });
  chosen.current = form.values.type;
  const provider = source?.value ?? null;
  const type = types.find((one) => one.type === form.values.type);
  const needs = type?.needs_admin === true ? "admin" : "editor";
  return (
    <FormPage
      title={provider === null ? "New DNS provider" : provider.name}
      text={
        provider === null ? "A DNS API in which the gateway writes challenge records." : undefined
      }
      parent={{ href: LIST, label: "DNS providers" }}
      form={rest}
      needs={provider === null ? "editor" : needs}
      isNew={provider === null}
      actions={
        provider !== null && (
          <Can needs={needs}>
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(provider)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
    >
      <TypeSection form={form} types={types} stored={provider} />
      <ZoneFields form={form} />
      {provider !== null && (
        <Can needs={needs}>
          <ZoneTest id={provider.id} zone={provider.zones[0] ?? ""} isDirty={rest.isDirty} />
        </Can>
      )}
      <NotesFields form={form} />
      <ConfirmDelete
        resource="dns-providers"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

interface TypeSectionProps extends TypeFieldProps {
  /** Null for one that is new. */
  readonly stored: Read<"dns-providers"> | null;
}

function TypeSection({ form, types, stored }: TypeSectionProps) {
  const role = useRole();
  const type = types.find((one) => one.type === form.values.type);
  const isUsable = (one: ProviderType) =>
    !one.needs_admin || includesRole(role, "admin") || one.type === stored?.type;
  return (
    <Section title="Provider" text={type?.help}>
      <Stack>
        <TypeField form={form} types={types.filter(isUsable)} />
        {type !== undefined && (
          <SettingFields form={form} type={type} isStored={stored?.type === form.values.type} />
        )}
        <HelpText>
          Secrets are stored encrypted and never shown. Admins can reference a secret with
          $secret:NAME.
        </HelpText>
        {stored !== null && <SecretHint />}
      </Stack>
    </Section>
  );
}

interface TypeFieldProps extends ProviderFieldsProps {
  readonly types: readonly ProviderType[];
}

function TypeField({ form, types }: TypeFieldProps) {
  const { name, type } = form.values;
  const choose = (next: string | null) => {
    if (next === null || next === type) return;
    form.setFieldValue("type", next as ProviderValues["type"]);
    // Types do not share settings.
    const { config, secrets } = emptySettings(types.find((one) => one.type === next));
    form.setFieldValue("config", config);
    form.setFieldValue("secrets", secrets);
    if (name === "" || name === type) form.setFieldValue("name", next);
  };
  return (
    <Select
      label="Provider"
      data={types.map((one) => ({ value: one.type, label: one.title }))}
      value={type}
      searchable
      allowDeselect={false}
      onChange={choose}
    />
  );
}

function ZoneFields({ form }: ProviderFieldsProps) {
  return (
    <Section title="Zones">
      <Stack>
        <ListField
          label="Zones"
          description="That it is used for. Empty: automatic itself"
          placeholder={form.values.zones.length === 0 ? "example.com" : ""}
          {...form.getInputProps("zones")}
        />
        <DurationField
          label="Propagation timeout"
          description="Maximum wait until all name servers of the zone serve the record"
          unit="s"
          zero="not checked"
          {...form.getInputProps("propagation_timeout")}
        />
      </Stack>
    </Section>
  );
}

function NotesFields({ form }: ProviderFieldsProps) {
  return (
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
          description="Off: the gateway writes no records with it"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}
