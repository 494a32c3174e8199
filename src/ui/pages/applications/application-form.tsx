// The page of a stored application: status, drift, and the form of its settings.
import { Button, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { IconExternalLink } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { useResource, useResourceList } from "../../api/queries.ts";
import type { Versioned } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { focusField } from "../../parts/schema/focus.ts";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { ApplicationDrift } from "./application-drift.tsx";
import {
  type ApplicationFieldsProps,
  DomainFields,
  UpstreamFields,
} from "./application-fields.tsx";
import { openUrl } from "./application-state.ts";
import { ApplicationStatus } from "./application-status.tsx";
import {
  type ApplicationValues,
  fieldOf,
  hasField,
  missingInPolicies,
  rules,
  toBody,
  toValues,
} from "./application-values.ts";
import { HttpsFields } from "./https-fields.tsx";
import { useNewUser } from "./password-users.tsx";
import { Adoption, isAdoptable } from "./plan-step.tsx";
import { PolicyCards } from "./policy-cards.tsx";

const LIST = pagePath("applications");

export function ApplicationForm({ source }: { readonly source: Versioned<Read<"applications">> }) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  // The form keeps its initial values; certificates and health stay live.
  const live = useResource("applications", source.value.id);
  const application = live.data?.value ?? source.value;
  const [adopts, setAdopts] = useState(false);
  const { form, ...rest } = useResourceForm<"applications", ApplicationValues>({
    resource: "applications",
    source,
    toValues,
    toBody,
    validate: rules,
    fieldOf,
    hasField,
    secrets: ["new_user"],
    query: adopts ? { adopt: 1 } : {},
    onSaved: ({ id }) => navigate(pagePath("applications", id), { replace: true }),
  });
  const addUser = useNewUser(form);
  const submit = (event?: FormEvent<HTMLFormElement>) => {
    event?.preventDefault();
    const missing = missingInPolicies(form.values);
    form.setErrors((errors) => ({ ...errors, ...missing }));
    if (Object.keys(missing).length > 0) {
      focusField(document.body, Object.keys(missing));
      return;
    }
    void addUser().then((isAdded) => isAdded && rest.submit());
  };
  return (
    <FormPage
      title={source.value.name}
      parent={{ href: LIST, label: "Applications" }}
      form={{ ...rest, submit }}
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
      {(adopts || isAdoptable(rest.failure)) && (
        <Adoption reason={rest.failure?.message ?? ""} adopts={adopts} onAdopt={setAdopts} />
      )}
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
      <Section title="Policies" text="What applies to every request of the application.">
        <PolicyCards form={form} />
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
          <Switch
            label="Enabled"
            description="Off: its domains are not served"
            {...form.getInputProps("enabled", { type: "checkbox" })}
          />
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
