// The form of an alert: events, destination, frequency, and a test; the form kernel saves it.
import { Button, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { AlertTest } from "./alert-test.tsx";
import { type AlertValues, fieldOf, rules, toBody, toValues } from "./alert-values.ts";
import { DeliveryState } from "./delivery-state.tsx";
import { MessageHistory } from "./message-history.tsx";
import { SinkFields } from "./sink-fields.tsx";
import { EventFields, FrequencyFields, ScopeFields } from "./notification-fields.tsx";

const LIST = pagePath("alerts");

export interface AlertFieldsProps {
  readonly form: UseFormReturnType<AlertValues>;
}

export function AlertForm({ source, template }: FormStart<Read<"alerts">>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const { form, ...rest } = useResourceForm<"alerts", AlertValues>({
    resource: "alerts",
    source,
    template,
    toValues,
    toBody,
    validate: rules,
    fieldOf,
    secrets: ["secrets"],
    onSaved: ({ id }) => navigate(pagePath("alerts", id), { replace: true }),
  });
  const alert = source?.value ?? null;
  return (
    <FormPage
      title={alert === null ? "New alert" : alert.name}
      text={alert === null ? "Choose events and where to send them." : undefined}
      parent={{ href: LIST, label: "Alerts" }}
      form={rest}
      needs="editor"
      isNew={alert === null}
      actions={
        alert !== null && (
          <>
            <DeliveryState alert={alert} />
            <Can needs="editor">
              <Button
                variant="light"
                color="red"
                onClick={() => setPendingDelete([toPendingDelete(alert)])}
              >
                Delete
              </Button>
            </Can>
          </>
        )
      }
      before={
        alert !== null && (
          <>
            <Can needs="editor">
              <AlertTest id={alert.id} isDirty={rest.isDirty} />
            </Can>
            <MessageHistory id={alert.id} />
          </>
        )
      }
    >
      <NameFields form={form} />
      <EventFields form={form} />
      <SinkFields form={form} isStored={alert !== null && alert.type === form.values.type} />
      <ScopeFields form={form} />
      <FrequencyFields form={form} />
      <ConfirmDelete
        resource="alerts"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function NameFields({ form }: AlertFieldsProps) {
  return (
    <Section title="Alert">
      <Stack>
        <TextInput
          label="Name"
          description="Display name, included in messages"
          placeholder="ops-chat"
          required
          data-autofocus
          {...form.getInputProps("name")}
        />
        <Switch
          label="Enabled"
          description="Off: no messages are sent"
          {...form.getInputProps("enabled", { type: "checkbox" })}
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
