// The form of a token, with its use; shows a new token once.
import { Stack } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "wouter";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Document } from "../../api/merge-patch.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { SecretOnce } from "../../parts/secret-once.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { isExpired } from "./expiry.ts";
import { ExpiryField } from "./expiry-field.tsx";

type Token = Read<"tokens">;

const schema = formSchemaOf("tokens");
const overrides = { expires_at: ExpiryField };

const check = (values: Document): Record<string, string> =>
  isExpired(values as Pick<Token, "expires_at">) ? { expires_at: "Must be in the future" } : {};

export function TokenForm(start: FormStart<Token>) {
  const [, navigate] = useLocation();
  const [secret, setSecret] = useState<string | null>(null);
  const token = start.source?.value ?? null;
  return (
    <>
      <ObjectForm
        resource="tokens"
        schema={schema}
        start={start}
        isClonable={false}
        text="For a program that calls the management API."
        overrides={overrides}
        check={check}
        notice={() => token !== null && <Facts token={token} />}
        onSaved={({ token: shown }) => {
          setSecret(shown ?? null);
          return shown !== undefined;
        }}
      />
      <SecretOnce
        label="token"
        value={secret}
        onClose={() => navigate(pagePath("tokens"), { replace: true })}
      />
    </>
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
