// The form of an ACME account; also rotates its key.
import { Button, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Document } from "../../api/merge-patch.ts";
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { Can, HelpText } from "../../parts/page-layout.tsx";
import { SecretHint } from "../../parts/secret-hint.tsx";
import { accountName, isAccountName, registrationOf, schema } from "./cas.ts";

const initial = { name: "letsencrypt" };

const check = ({ terms_agreed: isAgreed }: Document): Record<string, string> =>
  isAgreed === true ? {} : { terms_agreed: "Required by the CA" };

export function AccountForm(start: FormStart<Read<"acme/accounts">>) {
  const account = start.source?.value ?? null;
  return (
    <ObjectForm
      resource="acme/accounts"
      schema={schema}
      start={start}
      initial={initial}
      isClonable={false}
      text="An account at a CA that issues certificates."
      check={check}
      actions={(stored) => (
        <Can needs="editor">
          <RotateButton account={stored} />
        </Can>
      )}
      onChange={(field, value, form) => {
        const isFollowing = account === null && isAccountName(String(form.values["name"] ?? ""));
        if (field === "directory_url" && isFollowing)
          form.setFieldValue("name", accountName(String(value)));
      }}
      after={({ form }) => ({
        main: <HelpText>{registrationOf(String(form.values["directory_url"]))}</HelpText>,
        binding: account !== null && account.eab_key_id !== null && <SecretHint />,
      })}
    />
  );
}

function RotateButton({ account }: { readonly account: Read<"acme/accounts"> }) {
  const { id, name } = account;
  const connection = useConnection();
  const { mutate, isPending } = useChange<Read<"acme/accounts">>({
    send: () => connection.send(`/acme/accounts/${id}/rotate-key`, { method: "POST" }),
    touches: ["acme/accounts"],
    done: () => `ACME account ${name} has a new key`,
  });
  const ask = () =>
    modals.openConfirmModal({
      title: `Rotate the key of ${name}?`,
      children: (
        <Text size="sm">
          The CA accepts only the new key for this account. Certificates are not affected. Not
          possible while a certificate is being issued.
        </Text>
      ),
      labels: { confirm: "Rotate key", cancel: "Cancel" },
      onConfirm: () => mutate(),
    });
  return (
    <Button variant="default" loading={isPending} onClick={ask}>
      Rotate key
    </Button>
  );
}
