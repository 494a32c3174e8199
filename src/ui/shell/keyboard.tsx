// The global keyboard shortcuts and their list; pages register `n` and `/` with hooks.
import { Kbd, Modal, Table } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useShortcut } from "../parts/shortcut.ts";

const keys = [
  ["Ctrl K", "Search pages, objects and actions"],
  ["/", "Search in the list"],
  ["n", "Create a new object"],
  ["p", "Pause and resume the live tail of requests"],
  ["?", "Show keyboard shortcuts"],
  ["Esc", "Close the open dialog"],
] as const;

export function KeyboardHelp() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  useShortcut("?", toggle);
  return (
    <Modal opened={isOpen} onClose={close} title="Keyboard shortcuts" size="sm">
      <Table>
        <Table.Tbody>
          {keys.map(([key, text]) => (
            <Table.Tr key={key}>
              <Table.Td w={70}>
                <Kbd>{key}</Kbd>
              </Table.Td>
              <Table.Td>{text}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
