// How an import is meant: from which program, adding or replacing, and the passphrase of an encrypted document.
import { Alert, PasswordInput, Radio, Select, Stack } from "@mantine/core";
import { type Format, formats, type Source } from "./import-source.ts";

type Mode = "merge" | "replace";

interface Props {
  readonly source: Source;
  readonly format: Format | null;
  readonly mode: Mode;
  readonly passphrase: string;
  readonly onFormat: (format: Format | null) => void;
  readonly onMode: (mode: Mode) => void;
  readonly onPassphrase: (passphrase: string) => void;
}

export function ImportOptions(props: Props) {
  const { source, format, mode, passphrase, onFormat, onMode, onPassphrase } = props;
  const found = formats.find(({ value }) => value === source.format)?.label;
  return (
    <Stack maw={640}>
      {source.problem !== null && <Alert color="yellow">{source.problem}</Alert>}
      <Select
        label="What it is"
        description={
          found === undefined ? "It does not look like any of these" : `It looks like: ${found}`
        }
        placeholder="Choose"
        data={formats.map((entry) => ({ ...entry }))}
        value={format}
        onChange={(value) =>
          onFormat(formats.find((entry) => entry.value === value)?.value ?? null)
        }
        allowDeselect={false}
      />
      {source.isEncrypted && (
        <PasswordInput
          label="Passphrase"
          description="The one that the document was exported with"
          autoComplete="off"
          value={passphrase}
          onChange={(event) => onPassphrase(event.currentTarget.value)}
        />
      )}
      <Radio.Group
        label="What becomes of what is here already"
        value={mode}
        onChange={(value) => onMode(value === "replace" ? "replace" : "merge")}
      >
        <Stack gap="xs" mt={6}>
          <Radio
            value="merge"
            label="Merge"
            description="Adds and updates. Objects that the document does not have stay."
          />
          <Radio
            value="replace"
            label="Replace"
            description="Also deletes what the lists in the document do not hold. Lists that it does not name stay."
          />
        </Stack>
      </Radio.Group>
    </Stack>
  );
}
