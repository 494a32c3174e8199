// The form of a token: role, expiry, networks; shows a new token once.
import { Button, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useState } from "react";
import { useLocation } from "wouter";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ConfirmDelete, type PendingDelete, toPendingDelete } from "../../parts/confirm-delete.tsx";
import { ListField, TagsField } from "../../parts/fields.tsx";
import { FormPage, type FormStart } from "../../parts/form-page.tsx";
import { Can, Fact, Section } from "../../parts/page-layout.tsx";
import { useResourceForm } from "../../parts/resource-form.tsx";
import { SecretOnce } from "../../parts/secret-once.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { RoleField } from "../users/role-field.tsx";
import { ExpiryField } from "./expiry-field.tsx";
import { rules, toBody, type TokenValues, toValues } from "./token-values.ts";

type Token = Read<"tokens">;
const LIST = pagePath("tokens");

export function TokenForm({ source, template }: FormStart<Token>) {
  const [, navigate] = useLocation();
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const { form, ...rest } = useResourceForm<"tokens", TokenValues>({
    resource: "tokens",
    source,
    template,
    toValues,
    toBody,
    validate: rules,
    onSaved: ({ id, token }) => {
      if (token === undefined) navigate(pagePath("tokens", id), { replace: true });
      else setSecret(token);
    },
  });
  const token = source?.value ?? null;
  return (
    <FormPage
      title={token === null ? "New token" : token.name}
      text={token === null ? "For a program that calls the management API." : undefined}
      parent={{ href: LIST, label: "Tokens" }}
      form={rest}
      needs="admin"
      isNew={token === null}
      actions={
        token !== null && (
          <Can needs="admin">
            <Button
              variant="light"
              color="red"
              onClick={() => setPendingDelete([toPendingDelete(token)])}
            >
              Delete
            </Button>
          </Can>
        )
      }
    >
      {token !== null && <Facts token={token} />}
      <TokenFields form={form} />
      <SecretOnce label="token" value={secret} onClose={() => navigate(LIST, { replace: true })} />
      <ConfirmDelete
        resource="tokens"
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => navigate(LIST)}
      />
    </FormPage>
  );
}

function Facts({ token }: { readonly token: Token }) {
  return (
    <Section title="Use">
      <Stack gap={6}>
        <Fact label="Last used">
          <RelativeTime at={token.last_used_at} />
        </Fact>
        <Fact label="Created">
          <RelativeTime at={token.created_at} />
        </Fact>
        <Fact label="Fingerprint">
          <span className="mono">{token.fingerprint}</span>, the beginning of its SHA-256
        </Fact>
      </Stack>
    </Section>
  );
}

function TokenFields({ form }: { readonly form: UseFormReturnType<TokenValues> }) {
  return (
    <>
      <Section title="Token">
        <Stack>
          <TextInput
            label="Name"
            description="The program that uses it, such as deploy-pipeline"
            required
            data-autofocus
            {...form.getInputProps("name")}
          />
          <RoleField {...form.getInputProps("role")} />
          <Switch
            label="Enabled"
            description="Off: the gateway rejects it"
            {...form.getInputProps("enabled", { type: "checkbox" })}
          />
        </Stack>
      </Section>
      <Section title="Limits" text="Restrictions of the token.">
        <Stack>
          <ExpiryField {...form.getInputProps("expires_at")} />
          <ListField
            label="Networks"
            description="Accepted from these networks only, such as 10.0.0.0/8. Empty: any"
            placeholder="10.0.0.0/8"
            {...form.getInputProps("allowed_cidrs")}
          />
        </Stack>
      </Section>
      <Section title="Notes">
        <Stack>
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
