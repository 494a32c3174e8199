// The preview of an import: changes and unsupported parts, and the button that applies it.
import { Alert, Button, Checkbox, Group, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import type { ApiResponse } from "../../api/connection.ts";
import { useStatus } from "../../api/queries.ts";
import { resources } from "../../api/resources.ts";
import { ChangeList, countsInWords, countsOf } from "../../parts/change-list.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { type Changes, type Import, useSendImport } from "./send-import.ts";
import { ImportReport } from "./import-report.tsx";

const allQueries = [...Object.keys(resources), "revisions", "settings", "sso", "audit"];

const ACCOUNT = "acme_account";

interface Props {
  readonly wanted: Import;
  /** Of the dry run. */
  readonly answer: ApiResponse<Changes>;
  readonly onAgain: () => void;
  readonly onApplied: (answer: ApiResponse<Changes>) => void;
}

export function ImportPreview({ wanted, answer, onAgain, onApplied }: Props) {
  const { changes, report_groups: groups = [], report_hosts: hosts = [] } = answer.value;
  const { data: status } = useStatus();
  const [agrees, setAgrees] = useState(false);
  const accounts = changes.filter(({ kind, action }) => kind === ACCOUNT && action === "create");
  const asksForTerms = wanted.format !== "sluice" && accounts.length > 0;
  const isStale = status !== undefined && status.revision !== answer.revision;
  return (
    <>
      {isStale && (
        <Alert color="yellow" mb="md" title="The configuration has changed since the preview">
          <Group gap="sm">
            <Text size="sm">This preview may be outdated.</Text>
            <Button size="xs" variant="default" onClick={onAgain}>
              Preview again
            </Button>
          </Group>
        </Alert>
      )}
      {answer.warning !== null && (
        <Alert color="yellow" mb="md" title="Warnings">
          {answer.warning}
        </Alert>
      )}
      {groups.length > 0 && <ImportReport groups={groups} hosts={hosts} />}
      <Section title="Changes" text={`Total: ${countsInWords(changes)}. Nothing is applied yet.`}>
        <ChangeList
          changes={changes}
          none="No changes: the gateway's configuration equals the file."
        />
      </Section>
      {asksForTerms && (
        <Checkbox
          mt="md"
          label="I agree to the terms of service of the CAs of all imported ACME accounts"
          description="The gateway then requests certificates right after the import; their names have to resolve to this gateway, unless it writes DNS records. Otherwise agree later, in each ACME account."
          checked={agrees}
          onChange={(event) => setAgrees(event.currentTarget.checked)}
        />
      )}
      {changes.length > 0 && (
        <ApplyButton
          wanted={{ ...wanted, agreesTerms: asksForTerms && agrees }}
          changes={changes}
          onApplied={onApplied}
        />
      )}
    </>
  );
}

interface ApplyProps extends Pick<Props, "wanted" | "onApplied"> {
  readonly changes: Changes["changes"];
}

function ApplyButton({ wanted, changes, onApplied }: ApplyProps) {
  const send = useSendImport();
  const { mutateAsync, isPending, error } = useChange<Changes>({
    send: () => send(wanted, false),
    touches: allQueries,
    done: () => "Imported",
    showsErrors: true,
  });
  const counts = countsOf(changes);
  const color = counts.delete > 0 ? "red" : "brand";
  const apply = () => mutateAsync().then(onApplied, () => undefined);
  const ask = () =>
    modals.openConfirmModal({
      title: "Apply the import?",
      children: (
        <Text size="sm">
          Total: {countsInWords(changes)}.{" "}
          {counts.delete > 0 && "Removed objects stop serving traffic. "}
          The import is one transaction and can be reverted.
        </Text>
      ),
      labels: { confirm: "Import", cancel: "Cancel" },
      confirmProps: { color },
      onConfirm: () => void apply(),
    });
  return (
    <>
      {error !== null && <ErrorPanel error={error} title="No changes applied" />}
      <Group justify="flex-end" mt="md">
        <Button color={color} loading={isPending} onClick={ask}>
          Import: {countsInWords(changes)}
        </Button>
      </Group>
    </>
  );
}
