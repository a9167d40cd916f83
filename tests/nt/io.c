/* SPDX-License-Identifier: BSD-3-Clause */
#include "io.h"

#include "check.h"
#include "hal.h"
#include "irp.h"
#include "libc.h"
#include "multiboot.h"
#include "object.h"
#include "pool.h"
#include "process.h"
#include "thread.h"

#define DRIVERS 8
#define DEVICES 16
#define REQUESTS 16 /* that do not wait for their end */
#define NAME 64
#define USER_LOWEST 0x10000ul
#define USER_HIGHEST 0xc0000000ul

struct device { /* what the NT object does not show */
    DEVICE_OBJECT object;
    bool used;
    bool exclusive;
    char name[NAME];
};

struct link {
    bool used;
    char name[NAME], target[NAME];
    const struct image *owner;
};

static struct driver drivers[DRIVERS];
static struct device devices[DEVICES];
static struct link links[DEVICES];

static PDEVICE_OBJECT device_below(PDEVICE_OBJECT object);
static unsigned unfinished(const FILE_OBJECT *file);

#define CALLER image_at((uint64_t)__builtin_return_address(0))

static void narrow(const UNICODE_STRING *from, char to[NAME])
{
    size_t length = from ? from->Length / 2 : 0;

    if (length >= NAME)
        length = NAME - 1;
    for (size_t i = 0; i < length; i++)
        to[i] = (char)from->Buffer[i];
    to[length] = 0;
}

/* "\DosDevices\x" is "\??\x". */
static void narrow_link(const UNICODE_STRING *from, char to[NAME])
{
    static const char alias[] = "\\DosDevices\\";
    char name[NAME];

    narrow(from, name);
    if (!strncmp(name, alias, sizeof(alias) - 1))
        snprintf(to, NAME, "\\??\\%s", name + sizeof(alias) - 1);
    else
        snprintf(to, NAME, "%s", name);
}

static struct device *find_device(const char *name)
{
    for (unsigned i = 0; i < DEVICES; i++)
        if (devices[i].used && devices[i].name[0] && !strcmp(devices[i].name, name))
            return &devices[i];
    return NULL;
}

static struct link *find_link(const char *name)
{
    for (unsigned i = 0; i < DEVICES; i++)
        if (links[i].used && !strcmp(links[i].name, name))
            return &links[i];
    return NULL;
}

static void init_device(struct device *device, PDRIVER_OBJECT driver, ULONG type,
                        ULONG characteristics)
{
    memset(&device->object, 0, sizeof(device->object));
    device->object.Type = 3;
    device->object.Size = sizeof(DEVICE_OBJECT);
    device->object.DriverObject = driver;
    device->object.DeviceType = type;
    device->object.Characteristics = characteristics;
    device->object.Flags = DO_DEVICE_INITIALIZING;
    device->object.StackSize = 1;
    device->object.NextDevice = driver->DeviceObject;
    driver->DeviceObject = &device->object;
}

NTSTATUS NTAPI IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize,
                              PUNICODE_STRING DeviceName, ULONG DeviceType,
                              ULONG DeviceCharacteristics, BOOLEAN Exclusive,
                              PDEVICE_OBJECT *DeviceObject)
{
    char name[NAME];
    struct device *device = devices;

    *DeviceObject = NULL;
    narrow(DeviceName, name);
    if (name[0] && find_device(name))
        return STATUS_OBJECT_NAME_COLLISION;
    while (device < &devices[DEVICES] && device->used)
        device++;
    if (device == &devices[DEVICES])
        return STATUS_INSUFFICIENT_RESOURCES;
    init_device(device, DriverObject, DeviceType, DeviceCharacteristics);
    if (DeviceExtensionSize) {
        device->object.DeviceExtension = pool_allocate(DeviceExtensionSize, POOL_OWN_TAG, NULL);
        if (!device->object.DeviceExtension)
            return STATUS_INSUFFICIENT_RESOURCES;
        memset(device->object.DeviceExtension, 0, DeviceExtensionSize);
    }
    device->used = true;
    device->exclusive = Exclusive;
    memcpy(device->name, name, NAME);
    *DeviceObject = &device->object;
    return STATUS_SUCCESS;
}

static PDEVICE_OBJECT device_below(PDEVICE_OBJECT object)
{
    for (unsigned i = 0; i < DEVICES; i++)
        if (devices[i].used && devices[i].object.AttachedDevice == object)
            return &devices[i].object;
    return NULL;
}

PDEVICE_OBJECT NTAPI IoAttachDeviceToDeviceStack(PDEVICE_OBJECT SourceDevice,
                                                 PDEVICE_OBJECT TargetDevice)
{
    PDEVICE_OBJECT top = io_top_of_stack(TargetDevice);

    top->AttachedDevice = SourceDevice;
    SourceDevice->StackSize = (CCHAR)(top->StackSize + 1);
    return top;
}

VOID NTAPI IoDetachDevice(PDEVICE_OBJECT TargetDevice)
{
    if (!TargetDevice->AttachedDevice)
        violation("IoDetachDevice: nothing is attached");
    TargetDevice->AttachedDevice = NULL;
}

PDEVICE_OBJECT io_top_of_stack(PDEVICE_OBJECT device)
{
    while (device->AttachedDevice)
        device = device->AttachedDevice;
    return device;
}

VOID NTAPI IoDeleteDevice(PDEVICE_OBJECT DeviceObject)
{
    struct device *device = (struct device *)DeviceObject;
    PDEVICE_OBJECT *at;

    if (device < devices || device >= &devices[DEVICES] || !device->used) {
        violation("IoDeleteDevice: not a device");
        return;
    }
    if (DeviceObject->ReferenceCount)
        violation("IoDeleteDevice: %d files are open", DeviceObject->ReferenceCount);
    if (DeviceObject->AttachedDevice || device_below(DeviceObject))
        violation("IoDeleteDevice: still in a device stack");
    for (at = &DeviceObject->DriverObject->DeviceObject; *at; at = &(*at)->NextDevice) {
        if (*at == DeviceObject) {
            *at = DeviceObject->NextDevice;
            break;
        }
    }
    if (DeviceObject->DeviceExtension)
        pool_free(DeviceObject->DeviceExtension, POOL_OWN_TAG);
    device->used = false;
}

NTSTATUS NTAPI IoCreateSymbolicLink(PUNICODE_STRING SymbolicLinkName, PUNICODE_STRING DeviceName)
{
    char name[NAME];

    narrow_link(SymbolicLinkName, name);
    if (find_link(name))
        return STATUS_OBJECT_NAME_COLLISION;
    for (unsigned i = 0; i < DEVICES; i++) {
        if (links[i].used)
            continue;
        links[i].used = true;
        memcpy(links[i].name, name, NAME);
        narrow(DeviceName, links[i].target);
        links[i].owner = CALLER;
        return STATUS_SUCCESS;
    }
    return STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS NTAPI IoDeleteSymbolicLink(PUNICODE_STRING SymbolicLinkName)
{
    char name[NAME];
    struct link *link;

    narrow_link(SymbolicLinkName, name);
    link = find_link(name);
    if (!link)
        return STATUS_OBJECT_NAME_NOT_FOUND;
    link->used = false;
    return STATUS_SUCCESS;
}

/* Drivers. */

static NTSTATUS NTAPI invalid_request(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    (void)DeviceObject;
    Irp->IoStatus.Status = STATUS_INVALID_DEVICE_REQUEST;
    Irp->IoStatus.Information = 0;
    IofCompleteRequest(Irp, IO_NO_INCREMENT);
    return STATUS_INVALID_DEVICE_REQUEST;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* A module's command line is its path, then what the user wrote behind it. */
const struct boot_module *driver_module(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < boot_module_count(); i++) {
        char path[128];
        char *space;

        snprintf(path, sizeof(path), "%s", boot_module(i)->command_line);
        space = strchr(path, ' ');
        if (space)
            *space = 0;
        if (!strncmp(file_name(path), name, length + 1))
            return boot_module(i);
    }
    return NULL;
}

static void init_driver_object(struct driver *driver)
{
    DRIVER_OBJECT *object = &driver->object;

    memset(object, 0, sizeof(*object));
    memset(&driver->extension, 0, sizeof(driver->extension));
    object->Type = 4;
    object->Size = sizeof(*object);
    object->DriverExtension = &driver->extension;
    driver->extension.DriverObject = object;
    object->DriverStart = (PVOID)driver->image->base;
    object->DriverSize = driver->image->pe.image_size;
    object->DriverInit = (DRIVER_INITIALIZE *)(driver->image->base + driver->image->pe.entry_rva);
    for (unsigned i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        object->MajorFunction[i] = invalid_request;
}

static void report_left(struct driver *driver, bool device_too)
{
    const char *name = driver->image->name;
    unsigned leaks = pool_leaks(driver->image);
    unsigned leases = hal_leases_of(driver->image);
    unsigned mappings = memory_mappings(driver->image);

    if (leaks)
        violation("%s left %u blocks of pool", name, leaks);
    if (mappings)
        violation("%s left %u mappings of device memory", name, mappings);
    if (leases) {
        violation("%s left %u allocations of counters", name, leases);
        hal_forget(driver->image);
    }
    for (unsigned i = 0; i < DEVICES; i++) {
        if (links[i].used && links[i].owner == driver->image) {
            violation("%s left the link %s", name, links[i].name);
            links[i].used = false;
        }
    }
    while (device_too && driver->object.DeviceObject) {
        violation("%s left a device", name);
        driver->object.DeviceObject->ReferenceCount = 0;
        IoDeleteDevice(driver->object.DeviceObject);
    }
}

struct driver *driver_load(const char *module, NTSTATUS *status, enum pe_status *pe)
{
    static WCHAR key[] = u"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\driver";
    UNICODE_STRING registry = {sizeof(key) - 2, sizeof(key), key};
    const struct boot_module *file = driver_module(module);
    struct driver *driver = drivers;

    while (driver < &drivers[DRIVERS] && driver->used)
        driver++;
    if (driver == &drivers[DRIVERS])
        panic("too many drivers");
    *status = STATUS_OBJECT_NAME_NOT_FOUND;
    if (!file)
        return NULL;
    *status = STATUS_INVALID_PARAMETER;
    driver->image = image_load(module, file->data, file->size, pe);
    if (!driver->image)
        return NULL;
    driver->used = true;
    init_driver_object(driver);
    *status = driver->object.DriverInit(&driver->object, &registry);
    if (irql_current() != PASSIVE_LEVEL) {
        violation("%s: DriverEntry returned at IRQL %u", module, irql_current());
        irql_set(PASSIVE_LEVEL);
    }
    if (!NT_SUCCESS(*status)) {
        report_left(driver, true);
        image_unload(driver->image);
        driver->used = false;
        return NULL;
    }
    for (PDEVICE_OBJECT d = driver->object.DeviceObject; d; d = d->NextDevice)
        d->Flags &= ~(ULONG)DO_DEVICE_INITIALIZING;
    return driver;
}

void driver_unload(struct driver *driver)
{
    if (!driver->object.DriverUnload)
        violation("%s has no DriverUnload", driver->image->name);
    else
        driver->object.DriverUnload(&driver->object);
    thread_reap();
    if (dpc_queued())
        violation("%s left queued DPCs", driver->image->name);
    if (process_notify_count())
        violation("%s left a process notify routine", driver->image->name);
    report_left(driver, true);
    image_unload(driver->image);
    driver->used = false;
}

/* Requests. */

static NTSTATUS send_simple(FILE_OBJECT *file, UCHAR major)
{
    struct request request;

    request_init(&request, file->DeviceObject, file, major);
    return request_send(&request);
}

NTSTATUS user_open(const char *name, HANDLE *handle)
{
    char path[NAME];
    const struct link *link;
    struct device *device;
    FILE_OBJECT *file;
    NTSTATUS status;

    *handle = NULL;
    snprintf(path, sizeof(path), "\\??\\%s", name);
    link = find_link(path);
    device = link ? find_device(link->target) : NULL;
    if (!device)
        return STATUS_OBJECT_NAME_NOT_FOUND;
    if (device->object.Flags & DO_DEVICE_INITIALIZING)
        violation("%s: opened while it still initialises", name);
    if (device->exclusive && device->object.ReferenceCount)
        return STATUS_ACCESS_DENIED;
    file = object_create(OBJECT_TYPE_FILE, sizeof(*file), NULL);
    if (!file)
        return STATUS_INSUFFICIENT_RESOURCES;
    file->Type = 5;
    file->Size = sizeof(*file);
    file->DeviceObject = &device->object;
    device->object.ReferenceCount++;
    status = send_simple(file, IRP_MJ_CREATE);
    if (NT_SUCCESS(status)) {
        *handle = handle_open(&process_current()->handles, file);
        return status;
    }
    device->object.ReferenceCount--;
    object_release(file);
    return status;
}

void io_close_file(void *body)
{
    FILE_OBJECT *file = body;
    NTSTATUS status;

    send_simple(file, IRP_MJ_CLEANUP);
    if (unfinished(file))
        violation("%u requests still wait after IRP_MJ_CLEANUP", unfinished(file));
    status = send_simple(file, IRP_MJ_CLOSE);
    if (!NT_SUCCESS(status))
        violation("IRP_MJ_CLOSE failed with %08x", (ULONG)status);
    file->DeviceObject->ReferenceCount--;
    object_release(file);
}

NTSTATUS user_close(HANDLE handle)
{
    void *file = handle_take(&process_current()->handles, handle);

    if (!file)
        return STATUS_INVALID_HANDLE;
    io_close_file(file);
    return STATUS_SUCCESS;
}

static bool is_user_memory(const void *pointer, ULONG size)
{
    uint64_t at = (uint64_t)pointer;

    return size == 0 || (at >= USER_LOWEST && at < USER_HIGHEST && size <= USER_HIGHEST - at);
}

/* Device control requests. */

struct user_request {
    bool used; /* of the table */
    bool sent;
    bool pending;
    struct request request;
    struct process *process;
    NTSTATUS status;
    void *buffer, *out; /* buffered: one system buffer as long as the longer side */
    ULONG out_size;
};

static struct user_request asynchronous[REQUESTS];

static unsigned unfinished(const FILE_OBJECT *file)
{
    unsigned count = 0;

    for (unsigned i = 0; i < REQUESTS; i++) {
        const struct request *request = &asynchronous[i].request;

        count += asynchronous[i].used && asynchronous[i].pending && !request->completions &&
                 request->irp.Tail.OriginalFileObject == file;
    }
    return count;
}

static NTSTATUS prepare_buffer(struct user_request *user, const void *in, ULONG in_size)
{
    ULONG size = in_size > user->out_size ? in_size : user->out_size;

    if (!is_user_memory(in, in_size) || !is_user_memory(user->out, user->out_size))
        return STATUS_ACCESS_VIOLATION;
    if (size) {
        user->buffer = pool_allocate(size, POOL_OWN_TAG, NULL);
        if (!user->buffer)
            return STATUS_INSUFFICIENT_RESOURCES;
        memcpy(user->buffer, in, in_size);
    }
    user->request.irp.AssociatedIrp.SystemBuffer = user->buffer;
    return STATUS_SUCCESS;
}

static NTSTATUS prepare(struct user_request *user, HANDLE handle, ULONG code, const void *in,
                        ULONG in_size)
{
    FILE_OBJECT *file = handle_body(&process_current()->handles, handle);
    IO_STACK_LOCATION *location;

    if (!file)
        return STATUS_INVALID_HANDLE;
    location = request_init(&user->request, file->DeviceObject, file, IRP_MJ_DEVICE_CONTROL);
    location->Parameters.DeviceIoControl.IoControlCode = code;
    location->Parameters.DeviceIoControl.InputBufferLength = in_size;
    location->Parameters.DeviceIoControl.OutputBufferLength = user->out_size;
    user->request.irp.UserBuffer = user->out;
    if ((code & 3) == METHOD_BUFFERED)
        return prepare_buffer(user, in, in_size);
    /* METHOD_NEITHER: the driver gets the caller's pointers; direct I/O would need MDLs. */
    location->Parameters.DeviceIoControl.Type3InputBuffer = (PVOID)in;
    return (code & 3) == METHOD_NEITHER ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED;
}

static void begin(struct user_request *user, HANDLE handle, ULONG code, const void *in,
                  ULONG in_size, void *out, ULONG out_size)
{
    user->process = process_current();
    user->out = out;
    user->out_size = out_size;
    user->status = prepare(user, handle, code, in, in_size);
    if (!NT_SUCCESS(user->status))
        return;
    user->sent = true;
    user->status = request_call(&user->request);
    user->pending = user->status == STATUS_PENDING;
}

/* Information bytes are copied back; an error copies nothing, a warning does. */
static void copy_back(struct user_request *user)
{
    IO_STATUS_BLOCK *result = &user->request.irp.IoStatus;

    if (result->Information > user->out_size) {
        violation("device control: %lu bytes of information for a buffer of %u",
                  result->Information, user->out_size);
        result->Information = user->out_size;
    }
    if ((ULONG)user->status >> 30 != 3)
        memcpy(user->out, user->buffer, result->Information);
}

static NTSTATUS end(struct user_request *user, ULONG *returned)
{
    *returned = 0;
    if (user->sent) {
        user->status = request_wait(&user->request, user->status);
        if (user->buffer)
            copy_back(user);
        *returned = (ULONG)user->request.irp.IoStatus.Information;
    }
    if (user->buffer)
        pool_free(user->buffer, POOL_OWN_TAG);
    return user->status;
}

NTSTATUS user_ioctl(HANDLE handle, ULONG code, const void *in, ULONG in_size, void *out,
                    ULONG out_size, ULONG *returned)
{
    struct user_request user = {0};

    begin(&user, handle, code, in, in_size, out, out_size);
    return end(&user, returned);
}

struct user_request *user_ioctl_begin(HANDLE handle, ULONG code, const void *in, ULONG in_size,
                                      void *out, ULONG out_size)
{
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct user_request *user = &asynchronous[i];

        if (__atomic_exchange_n(&user->used, true, __ATOMIC_ACQUIRE))
            continue;
        memset((uint8_t *)user + offsetof(struct user_request, sent), 0,
               sizeof(*user) - offsetof(struct user_request, sent));
        begin(user, handle, code, in, in_size, out, out_size);
        return user;
    }
    panic("too many requests");
}

bool user_ioctl_done(const struct user_request *user)
{
    return !user->pending || user->request.completions;
}

bool user_ioctl_wait(struct user_request *user, unsigned milliseconds)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000 * (LONGLONG)milliseconds};

    if (user->pending)
        KeWaitForSingleObject(&user->request.done, Executive, KernelMode, FALSE, &timeout);
    return user_ioctl_done(user);
}

void user_ioctl_cancel(struct user_request *user)
{
    if (!user_ioctl_done(user))
        request_cancel(&user->request);
}

NTSTATUS user_ioctl_end(struct user_request *user, ULONG *returned)
{
    NTSTATUS status = end(user, returned);

    __atomic_store_n(&user->used, false, __ATOMIC_RELEASE);
    return status;
}

void io_cancel_process(const struct process *process)
{
    ULONG returned;

    for (unsigned i = 0; i < REQUESTS; i++) {
        struct user_request *user = &asynchronous[i];

        if (!user->used || user->process != process)
            continue;
        user_ioctl_cancel(user);
        user_ioctl_end(user, &returned);
    }
}
