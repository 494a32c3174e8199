// The form of single sign-on, with the redirect URL and a test.
import { Button, Stack, Text } from "@mantine/core";
import { useRef, useState } from "react";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import { toMessage } from "../../api/error.ts";
import type { Document } from "../../api/merge-patch.ts";
import { useMayChange, useRead, type Versioned } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { useDocumentForm } from "../../parts/document-form.tsx";
import { FormPage } from "../../parts/form-page.tsx";
import { HelpText, Section } from "../../parts/page-layout.tsx";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { SchemaFields, schemaOptions } from "../../parts/schema-fields.tsx";
import { CopyableValue } from "../../parts/secret-once.tsx";
import { ConnectionTest } from "./connection-test.tsx";
import { IssuerField } from "./issuer-field.tsx";

export type Sso = Schemas["Sso"];

const CALLBACK = "/api/v1/auth/sso/callback";
const schema = formSchemaOf("sso") as JsonSchema;
const overrides = { issuer: IssuerField };

export function SsoForm({ source }: { readonly source: Versioned<Sso> }) {
  const [testedAt, setTestedAt] = useState<number | null>(null);
  const wantsTest = useRef(false);
  const { form, ...rest } = useDocumentForm<Sso, Document>({
    ...schemaOptions(schema, { isStored: true }),
    path: "sso",
    source,
    done: ({ enabled }) => (enabled ? "Saved. Single sign-on is on" : "Saved"),
    onSaved: () => {
      if (wantsTest.current) setTestedAt(Date.now());
    },
  });
  const mayChange = useMayChange("admin");
  const submit: typeof rest.submit = (event) => {
    wantsTest.current = false;
    rest.submit(event);
  };
  const test = () => {
    if (!rest.isDirty) return setTestedAt(Date.now());
    wantsTest.current = true;
    rest.submit();
  };
  return (
    <FormPage
      title="Single sign-on"
      text="Sign-in with accounts of your identity provider (OpenID Connect). Passwords still work."
      form={{ ...rest, submit }}
      needs="admin"
      isNew={false}
      before={<RedirectAddress />}
      footer={
        <Button variant="default" loading={rest.isSaving} onClick={test}>
          {rest.isDirty ? "Save and test" : "Test the connection"}
        </Button>
      }
    >
      <SchemaFields
        form={form}
        schema={schema}
        isStored={source.value.client_secret_set}
        isReadOnly={!mayChange}
        overrides={overrides}
        after={{ users: <OpenNote values={form.values as unknown as Sso} /> }}
      />
      {testedAt !== null && <ConnectionTest run={testedAt} />}
    </FormPage>
  );
}

function OpenNote({ values }: { readonly values: Sso }) {
  const { auto_provision: isOpen, default_role: role, allowed_domains: domains } = values;
  if (!isOpen || role === null || domains.length > 0) return null;
  return (
    <HelpText>
      Every account of the provider can sign in as {role}. Restrict the domains unless the provider
      is private.
    </HelpText>
  );
}

/** The redirect URL to register at the provider. */
function RedirectAddress() {
  const settings = useRead<Schemas["Settings"]>("settings");
  const publicUrl = settings.data?.value.public_url ?? null;
  const base = (publicUrl ?? location.origin).replace(/\/$/, "");
  return (
    <Section
      title="Redirect URL"
      text="Register a confidential client with authorization code flow and this redirect URL at the provider."
    >
      <Stack gap="xs">
        <CopyableValue value={`${base}${CALLBACK}`} label="the redirect URL" />
        {publicUrl === null && settings.data !== undefined && (
          <HelpText>
            Derived from the URL of this page. Set the public address in the gateway settings if
            users have another one.
          </HelpText>
        )}
        {settings.error !== null && (
          <Text size="sm" c="red">
            {toMessage(settings.error)}
          </Text>
        )}
      </Stack>
    </Section>
  );
}
