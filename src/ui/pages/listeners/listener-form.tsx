// The form of a listener: its address and port, and what it asks of connections; asks the kernel to save it.
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
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type Doomed, toDoomed } from "../../parts/confirm-delete.tsx";
import { ListField, TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import {
  ClientCertificateFields,
  LimitFields,
  ProxyFields,
  TlsFields,
} from "./listener-fields.tsx";
import {
  cutsTheWay,
  isTheWay,
  type ListenerValues,
  placeOf,
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
  const [doomed, setDoomed] = useState<readonly Doomed[] | null>(null);
  const { form, ...rest } = useResourceForm<"listeners", ListenerValues>({
    resource: "listeners",
    ...{ source, template, toValues, toBody, validate: rules, placeOf },
    onSaved: ({ id }) => navigate(pagePath("listeners", id), { replace: true }),
  });
  const listener = source?.value ?? null;
  const isTls = form.values.protocol === "https";
  return (
    <FormPage
      title={listener === null ? "New listener" : listener.name}
      text={
        listener === null
          ? "An address and a port where browsers and other HTTP clients connect."
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
            <Button variant="light" color="red" onClick={() => setDoomed([toDoomed(listener)])}>
              Delete
            </Button>
          </Can>
        )
      }
    >
      {listener !== null && <WayWarning form={form} listener={listener} />}
      <BasicFields form={form} />
      {isTls && <TlsFields form={form} />}
      {isTls && <ClientCertificateFields form={form} />}
      <ProxyFields form={form} />
      <LimitFields form={form} />
      <ConfirmDelete
        resource="listeners"
        objects={doomed}
        onClose={() => setDoomed(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

interface WarningProps extends ListenerFieldsProps {
  readonly listener: Read<"listeners">;
}

/** Somebody may saw off the branch that they sit on. */
function WayWarning({ form, listener }: WarningProps) {
  if (!isTheWay(listener, location)) return null;
  const changed = Object.fromEntries(
    Object.keys(form.values).map((name) => [name, form.isDirty(name)]),
  );
  return cutsTheWay(listener, changed, location) ? (
    <Alert color="red" title="You may lose this page" mb="md" role="alert">
      You seem to have reached this page through this listener. When you save, it may no longer
      answer at {location.host}. Make sure that there is another way to the gateway.
    </Alert>
  ) : (
    <Alert color="yellow" title="You are here through this listener" mb="md">
      Changing its address, its port or its protocol, or deleting it, may close the way to this
      page.
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
            { value: "http", label: "HTTP: plain" },
            { value: "https", label: "HTTPS: encrypted, with the certificates of the gateway" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("protocol")}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberField
            label="Port"
            description="Browsers expect 80 for HTTP, 443 for HTTPS"
            required
            placeholder={form.values.protocol === "https" ? "443" : "80"}
            {...{ min: 1, max: 65_535, isGrouped: false }}
            {...form.getInputProps("port")}
          />
          <TextInput
            label="Address"
            description="0.0.0.0: all of IPv4; :: all there are"
            {...form.getInputProps("address")}
          />
        </SimpleGrid>
        <ListField
          label="Hosts"
          description="Only these names are served; empty: any. Listeners with different hosts may share an address and port"
          placeholder="*.example.com"
          {...form.getInputProps("hosts")}
        />
        <Switch
          label="HTTP/2"
          description="Many requests on one connection"
          {...form.getInputProps("http2", { type: "checkbox" })}
        />
        <TagsField label="Tags" description="Words to find it by" {...form.getInputProps("tags")} />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
        <Switch
          label="Enabled"
          description="It listens only while it is"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}
