// Shows recovery codes once, to copy or save as a file; stores nothing.
import {
  Alert,
  Button,
  Checkbox,
  Code,
  CopyButton,
  Group,
  Modal,
  SimpleGrid,
  Stack,
} from "@mantine/core";
import { useState } from "react";

interface Props {
  /** Null: nothing is shown. */
  readonly codes: readonly string[] | null;
  readonly onClose: () => void;
}

export function RecoveryCodes({ codes, onClose }: Props) {
  return (
    <Modal
      opened={codes !== null}
      onClose={onClose}
      title="Your recovery codes"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      {codes !== null && <Codes codes={codes} onClose={onClose} />}
    </Modal>
  );
}

function Codes({ codes, onClose }: { readonly codes: readonly string[]; onClose: () => void }) {
  const [isKept, setKept] = useState(false);
  const text = codes.join("\n");
  return (
    <Stack>
      <Alert color="yellow">
        Each code works once, if you lose your phone. They are never shown again.
      </Alert>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" role="list" aria-label="Recovery codes">
        {codes.map((code) => (
          <Code key={code} role="listitem" ta="center" py={6}>
            {code}
          </Code>
        ))}
      </SimpleGrid>
      <Group gap="xs">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button variant="default" size="xs" onClick={copy}>
              {copied ? "Copied" : "Copy all"}
            </Button>
          )}
        </CopyButton>
        <Button
          component="a"
          variant="default"
          size="xs"
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(`${text}\n`)}`}
          download="sluice-recovery-codes.txt"
        >
          Save as a file
        </Button>
      </Group>
      <Checkbox
        label="I have stored them in a safe place"
        checked={isKept}
        onChange={(event) => setKept(event.currentTarget.checked)}
      />
      <Group justify="flex-end">
        <Button onClick={onClose} disabled={!isKept}>
          Done
        </Button>
      </Group>
    </Stack>
  );
}
