// The form of a service: name, targets, protocol; the form kernel saves it.
import { Button, Select, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, HelpText, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { HealthFields } from "./health-fields.tsx";
import { LiveTargets } from "./live-targets.tsx";
import { UpstreamFields } from "./upstream-fields.tsx";
import {
  hasTls,
  isGrpc,
  isHttp,
  rules,
  type ServiceValues,
  toBody,
  toValues,
} from "./service-values.ts";
import { TargetFields } from "./target-fields.tsx";
import { TlsFields } from "./tls-fields.tsx";
import {
  ConnectionFields,
  RetrySection,
  LoadBalancingFields,
  TimeoutFields,
} from "./traffic-fields.tsx";
import { UsedBy } from "./used-by.tsx";

const LIST = pagePath("services");

export function ServiceForm({ source, template }: FormStart<Read<"services">>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const { form, ...rest } = useResourceForm<"services", ServiceValues>({
    resource: "services",
    source,
    template,
    toValues,
    toBody,
    validate: rules,
    onSaved: ({ id }) => navigate(pagePath("services", id), { replace: true }),
  });
  const service = source?.value ?? null;
  return (
    <FormPage
      title={service === null ? "New service" : service.name}
      text={service === null ? "An application and the servers it runs on." : service.description}
      parent={{ href: LIST, label: "Services" }}
      form={rest}
      needs="editor"
      isNew={service === null}
      actions={
        service !== null && (
          <Can needs="editor">
            <Button
              variant="default"
              component={Link}
              href={`${pagePath("services", "new")}?from=${service.id}`}
            >
              Clone
            </Button>
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(service)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
      before={
        service !== null && (
          <>
            <LiveTargets service={service} />
            <UsedBy service={service} />
          </>
        )
      }
    >
      <BasicFields form={form} />
      {service === null && <TargetFields form={form} />}
      {hasTls(form.values.protocol) && <TlsFields form={form} />}
      {isHttp(form.values.protocol) && <UpstreamFields form={form} />}
      <LoadBalancingFields form={form} />
      <HealthFields form={form} />
      <RetrySection form={form} />
      <TimeoutFields form={form} />
      <ConnectionFields form={form} />
      <ConfirmDelete
        resource="services"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

export interface ServiceFieldsProps {
  readonly form: UseFormReturnType<ServiceValues>;
}

function BasicFields({ form }: ServiceFieldsProps) {
  return (
    <Section title="Service">
      <Stack>
        <TextInput label="Name" required data-autofocus {...form.getInputProps("name")} />
        <Select
          label="Protocol"
          description="Protocol towards the targets"
          data={[
            { value: "http", label: "HTTP: a web application" },
            { value: "https", label: "HTTPS: a web application with its own certificate" },
            { value: "h2c", label: "HTTP/2 without TLS (h2c)" },
            { value: "h2", label: "HTTP/2 over TLS" },
            { value: "grpc", label: "gRPC without TLS" },
            { value: "grpcs", label: "gRPC over TLS" },
            { value: "tcp", label: "TCP: databases, mail, SSH, for stream routes" },
            { value: "tls", label: "TCP with TLS, for stream routes" },
            { value: "udp", label: "UDP: DNS, games, for stream routes" },
          ]}
          allowDeselect={false}
          {...form.getInputProps("protocol")}
        />
        {isGrpc(form.values.protocol) && (
          <HelpText>
            Routes to this service need a listener with the full engine or with both engines, or the
            plugin grpc-web for browsers.
          </HelpText>
        )}
        <TagsField
          label="Tags"
          description="Labels for search and filters"
          {...form.getInputProps("tags")}
        />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
        <Switch
          label="Enabled"
          description="Off: no route can use it"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}
