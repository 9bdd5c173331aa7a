# A guest of one page: enters long mode, counts to 16 million, reloads the page table, asks cpuid, and tells QEMU's
# isa-debug-exit device 0x20, so that QEMU ends with code 65.
#
# Some hosts have a /dev/kvm that opens and creates a virtual CPU, runs real mode, and then stands in long mode or runs
# it 20 to 80 times slower than emulation. This code tells them apart.
#
#   as --64 -o probe.o probe.S && ld -m elf_x86_64 -Ttext=0xf000 -o probe.elf probe.o
#   objcopy -O binary -j .text probe.elf probe.bin

    .set SEGMENT, 0xf0000           # where the last 64 KiB of the firmware also are, below 1 MiB
    .set TABLES, 0x1000

    .globl _start
    .text
    .code16
_start:
    cli
    cld
    xorw %ax, %ax
    movw %ax, %es
    movw $TABLES, %di
    movw $0xc00, %cx                # three pages of page tables, cleared
    xorl %eax, %eax
    rep stosl
    movl $(TABLES + 0x1003), %es:TABLES
    movl $(TABLES + 0x2003), %es:(TABLES + 0x1000)
    movl $0x83, %es:(TABLES + 0x2000)   # the first 2 MiB, one to one

    movw $0xf000, %ax
    movw %ax, %ds
    lgdtl gdt_pointer
    movl $0x20, %eax                # PAE
    movl %eax, %cr4
    movl $TABLES, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER.LME
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000001, %eax           # paging and protection
    movl %eax, %cr0
    ljmpl $8, $(SEGMENT + long_mode)

    .code64
long_mode:
    movl $16000000, %ecx
1:  decl %ecx
    jnz 1b
    movq %cr3, %rax
    movq %rax, %cr3
    xorl %eax, %eax
    cpuid
    movb $0x20, %al
    outb %al, $0xf4
2:  hlt
    jmp 2b

    .balign 8
gdt:
    .quad 0
    .quad 0x00209a0000000000        # 64-bit code
gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long SEGMENT + gdt

    .org 0xff0                      # the reset vector
    .code16
    ljmpw $0xf000, $_start
    .org 0x1000
