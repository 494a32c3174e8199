// The form of a listener: address, port, TLS and limits; the form kernel saves it.
import {
  Alert,
  Button,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { portErrorOf } from "../../api/error.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { ListField, TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import {
  ClientCertificateFields,
  EngineFields,
  LimitFields,
  ProxyFields,
  TlsFields,
} from "./listener-fields.tsx";
import {
  mayDisconnect,
  isOwnListener,
  type ListenerValues,
  rules,
  toBody,
  toValues,
} from "./listener-values.ts";

const LIST = pagePath("listeners");

export interface ListenerFieldsProps {
  readonly form: UseFormReturnType<ListenerValues>;
}

export function ListenerForm({ source, template }: FormStart<Read<"listeners">>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const { form, ...rest } = useResourceForm<"listeners", ListenerValues>({
    resource: "listeners",
    source,
    template,
    toValues,
    toBody,
    validate: rules,
    fieldErrorOf: portErrorOf,
    onSaved: ({ id }) => navigate(pagePath("listeners", id), { replace: true }),
  });
  const listener = source?.value ?? null;
  const isTls = form.values.protocol === "https";
  return (
    <FormPage
      title={listener === null ? "New listener" : listener.name}
      text={
        listener === null
          ? "An address and port that accepts HTTP connections."
          : listener.description
      }
      parent={{ href: LIST, label: "Listeners" }}
      form={rest}
      needs="admin"
      isNew={listener === null}
      actions={
        listener !== null && (
          <Can needs="admin">
            <Button variant="default" component={Link} href={`${LIST}/new?from=${listener.id}`}>
              Clone
            </Button>
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(listener)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
    >
      {listener !== null && <DisconnectWarning form={form} listener={listener} />}
      <BasicFields form={form} />
      <EngineFields form={form} isNew={listener === null} />
      {isTls && <TlsFields form={form} />}
      {isTls && <ClientCertificateFields form={form} />}
      <ProxyFields form={form} />
      <LimitFields form={form} />
      <ConfirmDelete
        resource="listeners"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

interface WarningProps extends ListenerFieldsProps {
  readonly listener: Read<"listeners">;
}

/** Saving may cut the connection of this page itself. */
function DisconnectWarning({ form, listener }: WarningProps) {
  if (!isOwnListener(listener, location)) return null;
  const changed = Object.fromEntries(
    Object.keys(form.values).map((name) => [name, form.isDirty(name)]),
  );
  return mayDisconnect(listener, changed, location) ? (
    <Alert color="red" title="This change may disconnect you" mb="md" role="alert">
      This page was probably opened through this listener. After saving, the listener may no longer
      respond at {location.host}. Make sure that you can reach the gateway at another address.
    </Alert>
  ) : (
    <Alert color="yellow" title="This page uses this listener" mb="md">
      Changing its address, port or protocol, or deleting it, may disconnect you.
    </Alert>
  );
}

function BasicFields({ form }: ListenerFieldsProps) {
  return (
    <Section title="Listener">
      <Stack>
        <TextInput label="Name" required data-autofocus {...form.getInputProps("name")} />
        <Select
          label="Protocol"
          data={[
            { value: "http", label: "HTTP" },
            { value: "https", label: "HTTPS, with the gateway's certificates" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("protocol")}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberField
            label="Port"
            description="Browsers use 80 for HTTP, 443 for HTTPS"
            required
            placeholder={form.values.protocol === "https" ? "443" : "80"}
            min={1}
            max={65_535}
            isGrouped={false}
            {...form.getInputProps("port")}
          />
          <TextInput
            label="Address"
            description="0.0.0.0 for all IPv4 addresses, :: for all addresses"
            {...form.getInputProps("address")}
          />
        </SimpleGrid>
        <ListField
          label="Hosts"
          description="Serves only these names. Empty: any. Listeners with different hosts may share an address and port"
          placeholder="*.example.com"
          {...form.getInputProps("hosts")}
        />
        <Switch
          label="HTTP/2"
          description="Concurrent requests on one connection"
          {...form.getInputProps("http2", { type: "checkbox" })}
        />
        <TagsField
          label="Tags"
          description="Labels for search and filters"
          {...form.getInputProps("tags")}
        />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
        <Switch
          label="Enabled"
          description="Off: its port is closed"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}
