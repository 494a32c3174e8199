// The form of a service: what it is called, where it runs, how it is spoken to; asks the kernel to save it.
import { Button, Select, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type Doomed, toDoomed } from "../../parts/confirm-delete.tsx";
import { DurationField, TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { StatusBadge } from "../../parts/status.tsx";
import { HealthFields } from "./health-fields.tsx";
import { stateOf } from "./service-state.ts";
import { rules, type ServiceValues, toBody, toValues } from "./service-values.ts";
import { TargetFields } from "./target-fields.tsx";

const LIST = pagePath("services");

export function ServiceForm({ source, template }: FormStart<Read<"services">>) {
  const [, navigate] = useLocation();
  const [doomed, setDoomed] = useState<readonly Doomed[] | null>(null);
  const { form, ...rest } = useResourceForm<"services", ServiceValues>({
    resource: "services",
    ...{ source, template, toValues, toBody, validate: rules },
    onSaved: ({ id }) => navigate(pagePath("services", id), { replace: true }),
  });
  const service = source?.value ?? null;
  return (
    <FormPage
      title={service === null ? "New service" : service.name}
      text={service === null ? "Say where your application runs." : undefined}
      parent={{ href: LIST, label: "Services" }}
      form={rest}
      needs="editor"
      isNew={service === null}
      actions={
        service !== null && (
          <>
            <StatusBadge state={stateOf(service)} />
            <Can needs="editor">
              <Button variant="light" color="red" onClick={() => setDoomed([toDoomed(service)])}>
                Delete
              </Button>
            </Can>
          </>
        )
      }
    >
      <BasicFields form={form} />
      <TargetFields form={form} stored={service} />
      <HealthFields form={form} />
      <TimeFields form={form} />
      <ConfirmDelete
        resource="services"
        objects={doomed}
        onClose={() => setDoomed(null)}
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
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <Select
            label="Protocol"
            description="How the targets are spoken to"
            data={["http", "https", "tcp", "tls", "udp"]}
            allowDeselect={false}
            {...form.getInputProps("protocol")}
          />
          <Select
            label="Which target is next"
            description="How the traffic is shared out"
            data={[
              { value: "round_robin", label: "Each in turn" },
              { value: "least_connections", label: "The one with the fewest requests" },
              { value: "random_two", label: "The better of two at random" },
              { value: "ewma", label: "The fastest of late" },
              { value: "consistent_hash", label: "By a hash of the client" },
              { value: "first", label: "The first that works" },
            ]}
            allowDeselect={false}
            {...form.getInputProps("algorithm")}
          />
          <TextInput
            label="Path"
            description="Put before the path of the request"
            placeholder="/"
            {...form.getInputProps("path")}
          />
          <TextInput
            label="Host header"
            description="preserve: the client's; target: the target's; or a name"
            {...form.getInputProps("host_header")}
          />
        </SimpleGrid>
        <TagsField label="Tags" description="Words to find it by" {...form.getInputProps("tags")} />
        <Textarea label="Description" autosize {...form.getInputProps("description")} />
        <Switch
          label="Enabled"
          description="Routes use it only while it is"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}

function TimeFields({ form }: ServiceFieldsProps) {
  return (
    <Section title="Times" text="How long the gateway waits before it gives up.">
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField label="To connect" unit="ms" {...form.getInputProps("connect_timeout")} />
        <DurationField
          label="For the first byte of the answer"
          unit="ms"
          {...form.getInputProps("response_timeout")}
        />
        <DurationField
          label="Between two parts of the answer"
          unit="ms"
          {...form.getInputProps("read_timeout")}
        />
        <DurationField
          label="For the whole request"
          unit="ms"
          zero="no limit"
          {...form.getInputProps("request_timeout")}
        />
        <DurationField
          label="Slow start"
          description="A new target gets its full share after this time"
          unit="ms"
          zero="at once"
          {...form.getInputProps("slow_start")}
        />
      </SimpleGrid>
    </Section>
  );
}
