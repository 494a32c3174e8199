// The page of a stored application: status, drift, and the form of its settings.
import { Button, SimpleGrid, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { IconExternalLink } from "@tabler/icons-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { useResource, useResourceList } from "../../api/queries.ts";
import type { Versioned } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { ApplicationDrift } from "./application-drift.tsx";
import {
  type ApplicationFieldsProps,
  DomainFields,
  UpstreamFields,
} from "./application-fields.tsx";
import { openUrl } from "./application-state.ts";
import { ApplicationStatus } from "./application-status.tsx";
import { type ApplicationValues, fieldOf, rules, toBody, toValues } from "./application-values.ts";
import { AccessFields, HttpsFields } from "./https-fields.tsx";

const LIST = pagePath("applications");

export function ApplicationForm({ source }: { readonly source: Versioned<Read<"applications">> }) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  // The form keeps its initial values; certificates and health stay live.
  const live = useResource("applications", source.value.id);
  const application = live.data?.value ?? source.value;
  const { form, ...rest } = useResourceForm<"applications", ApplicationValues>({
    resource: "applications",
    source,
    toValues,
    toBody,
    validate: rules,
    fieldOf,
    onSaved: ({ id }) => navigate(pagePath("applications", id), { replace: true }),
  });
  return (
    <FormPage
      title={source.value.name}
      parent={{ href: LIST, label: "Applications" }}
      form={rest}
      needs="editor"
      isNew={false}
      actions={
        <>
          <OpenButton application={application} />
          <Can needs="editor">
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(application)])}
            >
              Delete
            </Button>
          </Can>
        </>
      }
    >
      <ApplicationStatus application={application} />
      <ApplicationDrift application={application} onResolved={rest.discard} />
      <ApplicationSettings form={form} />
      <ConfirmDelete
        resource="applications"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function ApplicationSettings({ form }: ApplicationFieldsProps) {
  return (
    <>
      <Section title="Domains" text="Host names of the application.">
        <DomainFields form={form} />
      </Section>
      <Section title="Upstream" text="The servers that the gateway forwards requests to.">
        <UpstreamFields form={form} />
      </Section>
      <Section title="HTTPS">
        <HttpsFields form={form} />
      </Section>
      <Section title="Access">
        <Stack>
          <AccessFields form={form} />
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <Switch
              label="Maintenance"
              description="Clients get status 503"
              {...form.getInputProps("maintenance", { type: "checkbox" })}
            />
            <Switch
              label="Enabled"
              description="Off: its domains are not served"
              {...form.getInputProps("enabled", { type: "checkbox" })}
            />
          </SimpleGrid>
        </Stack>
      </Section>
      <Section title="Name and notes">
        <Stack>
          <TextInput
            label="Name"
            description="Also the name of its service, route and certificate"
            required
            {...form.getInputProps("name")}
          />
          <TagsField
            label="Tags"
            description="Labels for search and filters"
            {...form.getInputProps("tags")}
          />
          <Textarea label="Description" autosize {...form.getInputProps("description")} />
        </Stack>
      </Section>
    </>
  );
}

/** Opens the first domain that a browser can open. */
function OpenButton({ application }: { readonly application: Read<"applications"> }) {
  const { data: listeners = [] } = useResourceList("listeners");
  const { domains, https, enabled } = application;
  const url = domains
    .map((domain) => openUrl(domain, https.mode, listeners))
    .find((one) => one !== null);
  if (url === undefined || url === null || !enabled) return null;
  return (
    <Button
      component="a"
      href={url}
      target="_blank"
      rel="noreferrer"
      variant="light"
      title={url}
      rightSection={<IconExternalLink size={16} aria-hidden="true" />}
    >
      Open
    </Button>
  );
}
