// The form of a certificate: where it comes from, what that needs, and how it does; the form kernel saves it.
import { Button, Radio, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import { useResource } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type Doomed, toDoomed } from "../../parts/confirm-delete.tsx";
import { TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { CertificateActions, CertificateStatus } from "./certificate-status.tsx";
import { type CertificateValues, rules, toBody, toValues } from "./certificate-values.ts";
import { DomainsField } from "./domains-field.tsx";
import { OrderFields } from "./order-fields.tsx";
import { UploadFields } from "./upload-fields.tsx";

const LIST = pagePath("certificates");

export interface CertificateFieldsProps {
  readonly form: UseFormReturnType<CertificateValues>;
}

export function CertificateForm({ source, template }: FormStart<Read<"certificates">>) {
  const [, navigate] = useLocation();
  const [doomed, setDoomed] = useState<readonly Doomed[] | null>(null);
  // The form keeps what it was opened with; the order goes on.
  const live = useResource("certificates", source?.value.id ?? null);
  const certificate = live.data?.value ?? source?.value ?? null;
  const { form, ...rest } = useResourceForm<"certificates", CertificateValues>({
    resource: "certificates",
    ...{ source, template, toValues, toBody, validate: rules, secrets: ["private_key"] },
    onSaved: ({ id }) => navigate(pagePath("certificates", id), { replace: true }),
  });
  return (
    <FormPage
      title={certificate === null ? "New certificate" : (source?.value.name ?? "")}
      text={certificate === null ? "What proves a name to browsers." : undefined}
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
                onClick={() => setDoomed([toDoomed(certificate)])}
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
        objects={doomed}
        onClose={() => setDoomed(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function SourceField({ form }: CertificateFieldsProps) {
  return (
    <Section title="Where it comes from">
      <Radio.Group
        aria-label="Where it comes from"
        {...form.getInputProps("source")}
        onChange={(value) => {
          form.clearErrors();
          form.setFieldValue("source", value as CertificateValues["source"]);
        }}
      >
        <Stack gap={10}>
          <Radio
            value="acme"
            label="Order it from an authority"
            description="Such as Let's Encrypt: free, trusted by browsers, renewed by itself"
          />
          <Radio
            value="upload"
            label="Upload one that I have"
            description="Certificate and key as PEM; you upload the next one before it runs out"
          />
          <Radio
            value="self_signed"
            label="Have this gateway sign one"
            description="For tests and private networks: browsers warn of it"
          />
        </Stack>
      </Radio.Group>
    </Section>
  );
}

function SourceFields({ form, id }: CertificateFieldsProps & { readonly id: string | null }) {
  switch (form.values.source) {
    case "acme":
      return <OrderFields form={form} isNew={id === null} />;
    case "upload":
      return <UploadFields form={form} id={id} />;
    case "self_signed":
      return (
        <Section title="Names" text="That the certificate is for.">
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
          description="Off: it is shown to no client, and not renewed"
          {...form.getInputProps("enabled", { type: "checkbox" })}
        />
      </Stack>
    </Section>
  );
}
