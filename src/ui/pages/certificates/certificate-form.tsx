// The form of a certificate: source, its fields, and status; the form kernel saves it.
import { Button, Radio, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import { useResource } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { CertificateActions, CertificateStatus } from "./certificate-status.tsx";
import { type CertificateValues, rules, toBody, toValues } from "./certificate-values.ts";
import { DomainsField } from "./domains-field.tsx";
import { AcmeFields } from "./acme-fields.tsx";
import { UploadFields } from "./upload-fields.tsx";

const LIST = pagePath("certificates");

export interface CertificateFieldsProps {
  readonly form: UseFormReturnType<CertificateValues>;
}

export function CertificateForm({ source, template }: FormStart<Read<"certificates">>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  // The form keeps its initial values; the certificate stays live.
  const live = useResource("certificates", source?.value.id ?? null);
  const certificate = live.data?.value ?? source?.value ?? null;
  const { form, ...rest } = useResourceForm<"certificates", CertificateValues>({
    resource: "certificates",
    source,
    template,
    toValues,
    toBody,
    validate: rules,
    secrets: ["private_key"],
    onSaved: ({ id }) => navigate(pagePath("certificates", id), { replace: true }),
  });
  return (
    <FormPage
      title={certificate === null ? "New certificate" : (source?.value.name ?? "")}
      text={certificate === null ? "A TLS certificate for one or more names." : undefined}
      parent={{ href: LIST, label: "Certificates" }}
      form={rest}
      needs="editor"
      isNew={certificate === null}
      actions={
        certificate !== null && (
          <>
            <CertificateActions certificate={certificate} />
            <Can needs="editor">
              <Button
                variant="light"
                color="red"
                onClick={() => setPendingDelete([toPendingDelete(certificate)])}
              >
                Delete
              </Button>
            </Can>
          </>
        )
      }
    >
      {certificate === null ? (
        <SourceField form={form} />
      ) : (
        <CertificateStatus certificate={certificate} />
      )}
      <SourceFields form={form} id={certificate?.id ?? null} />
      <NotesFields form={form} />
      <ConfirmDelete
        resource="certificates"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function SourceField({ form }: CertificateFieldsProps) {
  return (
    <Section title="Source">
      <Radio.Group
        aria-label="Source"
        {...form.getInputProps("source")}
        onChange={(value) => {
          form.clearErrors();
          form.setFieldValue("source", value as CertificateValues["source"]);
        }}
      >
        <Stack gap={10}>
          <Radio
            value="acme"
            label="Request from a CA"
            description="Such as Let's Encrypt: free, trusted by browsers, renewed automatically"
          />
          <Radio
            value="upload"
            label="Upload"
            description="Certificate and key as PEM; upload a new one before it expires"
          />
          <Radio
            value="local_ca"
            label="Local CA"
            description="Signed by this gateway for private names and addresses; devices that trust its root show no warning"
          />
          <Radio
            value="self_signed"
            label="Self-signed"
            description="For tests and private networks: browsers show a warning"
          />
        </Stack>
      </Radio.Group>
    </Section>
  );
}

function SourceFields({ form, id }: CertificateFieldsProps & { readonly id: string | null }) {
  switch (form.values.source) {
    case "acme":
      return <AcmeFields form={form} isNew={id === null} />;
    case "upload":
      return <UploadFields form={form} id={id} />;
    case "local_ca":
      return (
        <Section title="Names" text="Private names and IP addresses that the certificate covers.">
          <DomainsField form={form} isNew={id === null} example="nas.home.arpa" />
        </Section>
      );
    case "self_signed":
      return (
        <Section title="Names" text="Names that the certificate covers.">
          <DomainsField form={form} isNew={id === null} example="nas.home.arpa" />
        </Section>
      );
    default:
      return null;
  }
}

function NotesFields({ form }: CertificateFieldsProps) {
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
          description="Off: it is not served and not renewed"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}
