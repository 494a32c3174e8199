// The form of a route: match conditions and forwarding; the form kernel saves it.
import {
  Anchor,
  Button,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { IconTestPipe } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import { nameOf, type Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { isHttp } from "../services/service-values.ts";
import { ConditionFields } from "./condition-fields.tsx";
import { ForwardFields, LimitFields, MaintenanceFields } from "./forward-fields.tsx";
import { GrpcFields } from "./grpc-fields.tsx";
import { MatchFields } from "./match-fields.tsx";
import { RouteCache } from "./route-cache.tsx";
import { RoutePlugins } from "./route-plugins.tsx";
import { exampleUrl } from "./route-text.ts";
import { type RouteValues, rules, toBody, toValues } from "./route-values.ts";

const LIST = pagePath("routes");

export interface RouteFieldsProps {
  readonly form: UseFormReturnType<RouteValues>;
}

/** `new?service_id=ID` starts with that service. */
function templateOf(template: Partial<Read<"routes">>): Partial<Read<"routes">> {
  const service = new URLSearchParams(location.search).get("service_id");
  return service === null ? template : { ...template, service_id: service };
}

export function RouteForm({ source, template }: FormStart<Read<"routes">>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const [start] = useState(() => templateOf(template));
  const { form, ...rest } = useResourceForm<"routes", RouteValues>({
    resource: "routes",
    source,
    template: start,
    toValues,
    toBody,
    validate: rules,
    onSaved: ({ id }) => navigate(pagePath("routes", id), { replace: true }),
  });
  const route = source?.value ?? null;
  return (
    <FormPage
      title={route === null ? "New route" : nameOf(route)}
      text={
        route === null
          ? "Match conditions and the service that gets the requests."
          : route.description
      }
      parent={{ href: LIST, label: "Routes" }}
      form={rest}
      needs="editor"
      isNew={route === null}
      actions={route !== null && <Actions route={route} onDelete={setPendingDelete} />}
      before={
        route !== null && (
          <>
            <RoutePlugins route={route} />
            <RouteCache route={route} />
          </>
        )
      }
    >
      <BasicFields form={form} />
      <MatchFields form={form} />
      <ConditionFields form={form} />
      <GrpcFields form={form} />
      <ForwardFields form={form} />
      <LimitFields form={form} />
      <MaintenanceFields form={form} />
      <LabelFields form={form} />
      <ConfirmDelete
        resource="routes"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

interface ActionsProps {
  readonly route: Read<"routes">;
  readonly onDelete: (pendingDelete: readonly PendingDelete[]) => void;
}

function Actions({ route, onDelete }: ActionsProps) {
  return (
    <>
      <Button
        variant="default"
        component={Link}
        href={`${pagePath("routes", "test")}?url=${encodeURIComponent(exampleUrl(route))}`}
        leftSection={<IconTestPipe size={16} />}
      >
        Test a request
      </Button>
      <Can needs="editor">
        <Button
          variant="default"
          component={Link}
          href={`${pagePath("routes", "new")}?from=${route.id}`}
        >
          Clone
        </Button>
        <Button variant="light" color="red" onClick={() => onDelete([toPendingDelete(route)])}>
          Delete
        </Button>
      </Can>
    </>
  );
}

function BasicFields({ form }: RouteFieldsProps) {
  const services = useResourceList("services");
  const chosen = form.values.service_id;
  const web = (services.data ?? []).filter(({ protocol }) => isHttp(protocol));
  const data = web.map(({ id, name }) => ({ value: id, label: name }));
  // Services may not have been read yet.
  const isKnown = chosen === null || data.some(({ value }) => value === chosen);
  return (
    <Section title="Route">
      <Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="Name"
            description="Optional display name"
            placeholder="shop"
            data-autofocus
            {...form.getInputProps("name")}
          />
          <Select
            label="Service"
            description="Receives the matched requests. None: only plugins respond"
            placeholder="none"
            searchable
            clearable
            nothingFoundMessage="No service with this name"
            data={isKnown ? data : [...data, { value: chosen, label: "…" }]}
            {...form.getInputProps("service_id")}
          />
        </SimpleGrid>
        {services.data !== undefined && web.length === 0 && (
          <Text size="sm">
            There is no service yet.{" "}
            <Anchor component={Link} href={pagePath("services", "new")} size="sm">
              Say where your application runs
            </Anchor>{" "}
            first.
          </Text>
        )}
        <Switch
          label="Enabled"
          description="Off: it matches no request"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}

function LabelFields({ form }: RouteFieldsProps) {
  const { priority, tags } = form.values;
  return (
    <FoldedSection
      title="Priority, tags and description"
      text="Precedence among matching routes, and labels."
      summary={[`Priority ${priority}`, ...tags].join(", ")}
      isOpenAtFirst={priority !== 0 || tags.length > 0 || form.values.description !== ""}
      fields={["priority", "tags", "description"]}
      errors={form.errors}
    >
      <NumberField
        label="Priority"
        description="The highest priority wins before anything else is compared. At equal priority, an exact host precedes *.example.com, an exact path precedes a longer prefix, and a prefix precedes a regular expression"
        min={-1_000_000}
        max={1_000_000}
        empty={0}
        {...form.getInputProps("priority")}
      />
      <TagsField
        label="Tags"
        description="Labels for search and filters"
        {...form.getInputProps("tags")}
      />
      <Textarea label="Description" autosize {...form.getInputProps("description")} />
    </FoldedSection>
  );
}
