// The form of a stream route: its port and the service behind it; the form kernel saves it.
import {
  Anchor,
  Button,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { LiveConnections } from "./live-connections.tsx";
import { ClientFields, LimitFields, ProxyFields, TlsFields } from "./stream-fields.tsx";
import {
  fieldErrorOf,
  rules,
  type StreamRouteValues,
  toBody,
  toValues,
} from "./stream-route-values.ts";

const LIST = pagePath("stream-routes");

export interface StreamFieldsProps {
  readonly form: UseFormReturnType<StreamRouteValues>;
}

export function StreamRouteForm({ source, template }: FormStart<Read<"stream-routes">>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const [start] = useState(() => {
    const service = new URLSearchParams(location.search).get("service_id");
    return service === null ? template : { ...template, service_id: service };
  });
  const { form, ...rest } = useResourceForm<"stream-routes", StreamRouteValues>({
    resource: "stream-routes",
    source,
    template: start,
    toValues,
    toBody,
    validate: rules,
    fieldErrorOf,
    onSaved: ({ id }) => navigate(pagePath("stream-routes", id), { replace: true }),
  });
  const route = source?.value ?? null;
  return (
    <FormPage
      title={route === null ? "New stream route" : route.name}
      text={route === null ? "A TCP or UDP port that forwards to a service." : route.description}
      parent={{ href: LIST, label: "Stream routes" }}
      form={rest}
      needs="editor"
      isNew={route === null}
      actions={
        route !== null && (
          <Can needs="editor">
            <Button variant="default" component={Link} href={`${LIST}/new?from=${route.id}`}>
              Clone
            </Button>
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(route)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
      before={route !== null && <LiveConnections route={route} />}
    >
      <BasicFields form={form} />
      {form.values.protocol === "tcp" && <TlsFields form={form} />}
      <ClientFields form={form} />
      <LimitFields form={form} />
      {form.values.protocol === "tcp" && <ProxyFields form={form} />}
      <ConfirmDelete
        resource="stream-routes"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function BasicFields({ form }: StreamFieldsProps) {
  return (
    <Section title="Stream route">
      <Stack>
        <TextInput label="Name" required data-autofocus {...form.getInputProps("name")} />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <Select
            label="Transport"
            description="UDP for DNS and games; TCP for the rest"
            data={[
              { value: "tcp", label: "TCP" },
              { value: "udp", label: "UDP" },
            ]}
            allowDeselect={false}
            {...form.getInputProps("protocol")}
          />
          <ServiceField form={form} />
        </SimpleGrid>
        <PortFields form={form} />
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

function ServiceField({ form }: StreamFieldsProps) {
  const services = useResourceList("services");
  const { service_id: chosen, protocol } = form.values;
  const wanted = protocol === "udp" ? ["udp"] : ["tcp", "tls"];
  const fitting = (services.data ?? []).filter((service) => wanted.includes(service.protocol));
  const data = fitting.map(({ id, name }) => ({ value: id, label: name }));
  const other = services.data?.find(({ id }) => id === chosen);
  const isKnown = chosen === null || data.some(({ value }) => value === chosen);
  return (
    <Stack gap={4}>
      <Select
        label="Service"
        description={`One with the protocol ${wanted.join(" or ")}`}
        required
        searchable
        placeholder="Choose"
        nothingFoundMessage="No service with this name"
        data={
          isKnown
            ? data
            : [...data, { value: chosen, label: other ? `${other.name} (${other.protocol})` : "…" }]
        }
        {...form.getInputProps("service_id")}
      />
      {services.data !== undefined && fitting.length === 0 && (
        <Text size="sm">
          No matching service yet.{" "}
          <Anchor component={Link} href={pagePath("services", "new")} size="sm">
            Create a service
          </Anchor>{" "}
          with this protocol first.
        </Text>
      )}
    </Stack>
  );
}

function PortFields({ form }: StreamFieldsProps) {
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label="Port or range"
        data={[
          { value: "one", label: "Single port" },
          { value: "several", label: "Port range" },
        ]}
        style={{ alignSelf: "flex-start" }}
        {...form.getInputProps("ports")}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        {form.values.ports === "one" ? (
          <NumberField
            label="Port"
            description="Clients connect to it"
            required
            placeholder="5432"
            min={1}
            max={65_535}
            isGrouped={false}
            {...form.getInputProps("listen_port")}
          />
        ) : (
          <TextInput
            label="Ports"
            description="First and last; all forward to the port of the target"
            required
            placeholder="32500-32599"
            {...form.getInputProps("port_range")}
            error={form.errors["port_range"] ?? form.errors["listen_port"]}
          />
        )}
        <TextInput
          label="Address"
          description="0.0.0.0 for all IPv4 addresses, :: for all addresses"
          {...form.getInputProps("listen_address")}
        />
      </SimpleGrid>
    </Stack>
  );
}
