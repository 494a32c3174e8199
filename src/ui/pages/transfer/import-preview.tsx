// What an import would change and what could not be carried over, and the button that brings it into service.
import { Alert, Button, Group, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useChange } from "../../api/changes.tsx";
import type { Answer } from "../../api/connection.ts";
import { useStatus } from "../../api/queries.ts";
import { resources } from "../../api/resources.ts";
import { ChangeList, countsInWords, countsOf } from "../../parts/change-list.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { type Changes, type Import, useSendImport } from "./send-import.ts";
import { ImportReport } from "./import-report.tsx";

const everything = [...Object.keys(resources), "revisions", "settings", "sso", "audit"];

interface Props {
  readonly wanted: Import;
  /** Of the dry run. */
  readonly answer: Answer<Changes>;
  readonly onAgain: () => void;
  readonly onApplied: (answer: Answer<Changes>) => void;
}

export function ImportPreview({ wanted, answer, onAgain, onApplied }: Props) {
  const { changes, report = [] } = answer.value;
  const { data: status } = useStatus();
  const isStale = status !== undefined && status.revision !== answer.revision;
  return (
    <>
      {isStale && (
        <Alert color="yellow" mb="md" title="The configuration has changed since">
          <Group gap="sm">
            <Text size="sm">What follows may not be what would happen now.</Text>
            <Button size="xs" variant="default" onClick={onAgain}>
              Preview again
            </Button>
          </Group>
        </Alert>
      )}
      {answer.warning !== null && (
        <Alert color="yellow" mb="md" title="Worth a look">
          {answer.warning}
        </Alert>
      )}
      {report.length > 0 && <ImportReport report={report} />}
      <Section
        title="What would change"
        text={`In all: ${countsInWords(changes)}. Nothing has happened yet.`}
      >
        <ChangeList
          changes={changes}
          none="Nothing: the gateway has all of this already, as it stands in the document."
        />
      </Section>
      {changes.length > 0 && (
        <ApplyButton wanted={wanted} changes={changes} onApplied={onApplied} />
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
    touches: everything,
    done: () => "Imported",
    showsErrors: true,
  });
  const counts = countsOf(changes);
  const color = counts.delete > 0 ? "red" : "brand";
  const apply = () => mutateAsync().then(onApplied, () => undefined);
  const ask = () =>
    modals.openConfirmModal({
      title: "Bring this into service?",
      children: (
        <Text size="sm">
          In all: {countsInWords(changes)}.{" "}
          {counts.delete > 0 && "What is removed serves nothing from then on. "}
          All of it happens as one change, or nothing of it, and can be taken back.
        </Text>
      ),
      labels: { confirm: "Import", cancel: "Cancel" },
      confirmProps: { color },
      onConfirm: () => void apply(),
    });
  return (
    <>
      {error !== null && <ErrorPanel error={error} title="Nothing was changed" />}
      <Group justify="flex-end" mt="md">
        <Button color={color} loading={isPending} onClick={ask}>
          Import: {countsInWords(changes)}
        </Button>
      </Group>
    </>
  );
}
