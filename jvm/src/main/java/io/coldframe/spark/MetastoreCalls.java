package io.coldframe.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Calls of the metastore for which Spark's client, the client of Hive 2.3, has no methods. The connection and
 * login are that client's; this class writes and reads the messages field by field.
 */
final class MetastoreCalls implements AutoCloseable {
  private static final byte CALL = 1;
  private static final byte EXCEPTION = 3;
  private static final int UNKNOWN_METHOD = 1;

  private static final byte STOP = 0;
  private static final byte BOOL = 2;
  private static final byte BYTE = 3;
  private static final byte DOUBLE = 4;
  private static final byte I16 = 6;
  private static final byte I32 = 8;
  private static final byte I64 = 10;
  private static final byte TEXT = 11;
  private static final byte STRUCT = 12;
  private static final byte MAP = 13;
  private static final byte SET = 14;
  private static final byte LIST = 15;

  private static final int MAX_NESTED = 16;

  private final Object client;
  private final Object in;
  private final Object out;
  private int number;

  /** {@code conf}: Hive's settings, of any Hive version. */
  MetastoreCalls(Object conf) throws ReflectiveOperationException {
    ClassLoader loader = conf.getClass().getClassLoader();
    Class<?> type = Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStoreClient", true, loader);
    client = newInstanceOf(type, conf);
    Field field = type.getDeclaredField("client");
    field.setAccessible(true);
    Object calls = field.get(client);
    in = Reflected.call(calls, "getInputProtocol");
    out = Reflected.call(calls, "getOutputProtocol");
  }

  @Override
  public void close() throws ReflectiveOperationException {
    Reflected.call(client, "close");
  }

  private static Object newInstanceOf(Class<?> type, Object argument) throws ReflectiveOperationException {
    for (Constructor<?> constructor : type.getConstructors()) {
      if (constructor.getParameterCount() == 1 && constructor.getParameterTypes()[0].isInstance(argument)) {
        return constructor.newInstance(argument);
      }
    }
    throw new NoSuchMethodException(type.getName() + " of " + argument.getClass().getName());
  }

  /** An instance of a Thrift class that describes the beginning of a message, struct, field or list. */
  private Object begin(String type, Object... parts) throws ReflectiveOperationException {
    String name = "org.apache.thrift.protocol." + type;
    for (Constructor<?> constructor : Class.forName(name, true, out.getClass().getClassLoader()).getConstructors()) {
      if (constructor.getParameterCount() == parts.length && (parts.length > 0 && accepts(constructor.getParameterTypes()[0], parts[0]))) {
        return constructor.newInstance(parts);
      }
    }
    throw new NoSuchMethodException(name);
  }

  private static boolean accepts(Class<?> type, Object value) {
    return type.isInstance(value) || (type == byte.class && value instanceof Byte);
  }

  private static Object part(Object begin, String name) throws ReflectiveOperationException {
    return begin.getClass().getField(name).get(begin);
  }

  /**
   * Calls the metastore and returns the fields of the answer by number: 0 is the result, the others are
   * declared errors. Null if the server does not know the call. {@code request}: the fields of the only
   * argument, numbered from 1, as texts or lists of texts.
   */
  Map<Integer, Object> call(String name, List<Object> request) throws ReflectiveOperationException {
    number++;
    Reflected.call(out, "writeMessageBegin", begin("TMessage", name, CALL, number));
    Reflected.call(out, "writeStructBegin", begin("TStruct", name));
    if (!request.isEmpty()) {
      Reflected.call(out, "writeFieldBegin", begin("TField", "request", STRUCT, (short) 1));
      write(request);
      Reflected.call(out, "writeFieldEnd");
    }
    Reflected.call(out, "writeFieldStop");
    Reflected.call(out, "writeStructEnd");
    Reflected.call(out, "writeMessageEnd");
    Reflected.call(Reflected.call(out, "getTransport"), "flush");
    byte kind = (Byte) part(Reflected.call(in, "readMessageBegin"), "type");
    Map<Integer, Object> answer = fields(0);
    Reflected.call(in, "readMessageEnd");
    if (kind == EXCEPTION) {
      if (Integer.valueOf(UNKNOWN_METHOD).equals(answer.get(2))) {
        return null;
      }
      throw new ReflectiveOperationException(name + ": " + text(answer.get(1)));
    }
    for (int error = 1; error <= 4; error++) {
      if (answer.get(error) instanceof Map) {
        throw new ReflectiveOperationException(name + ": " + text(((Map<?, ?>) answer.get(error)).get(1)));
      }
    }
    return answer;
  }

  private void write(List<Object> request) throws ReflectiveOperationException {
    Reflected.call(out, "writeStructBegin", begin("TStruct", "request"));
    for (int at = 0; at < request.size(); at++) {
      boolean isList = request.get(at) instanceof List;
      Reflected.call(out, "writeFieldBegin", begin("TField", "field", isList ? LIST : TEXT, (short) (at + 1)));
      if (isList) {
        List<?> texts = (List<?>) request.get(at);
        Reflected.call(out, "writeListBegin", begin("TList", TEXT, texts.size()));
        for (Object text : texts) {
          Reflected.call(out, "writeString", text);
        }
        Reflected.call(out, "writeListEnd");
      } else {
        Reflected.call(out, "writeString", request.get(at));
      }
      Reflected.call(out, "writeFieldEnd");
    }
    Reflected.call(out, "writeFieldStop");
    Reflected.call(out, "writeStructEnd");
  }

  private Map<Integer, Object> fields(int depth) throws ReflectiveOperationException {
    if (depth > MAX_NESTED) {
      throw new ReflectiveOperationException("the metastore's answer nests too deeply");
    }
    Map<Integer, Object> fields = new HashMap<>();
    Reflected.call(in, "readStructBegin");
    for (Object field = Reflected.call(in, "readFieldBegin");
        (Byte) part(field, "type") != STOP;
        field = Reflected.call(in, "readFieldBegin")) {
      fields.put((int) (Short) part(field, "id"), value((Byte) part(field, "type"), depth + 1));
      Reflected.call(in, "readFieldEnd");
    }
    Reflected.call(in, "readStructEnd");
    return fields;
  }

  private Object value(byte type, int depth) throws ReflectiveOperationException {
    switch (type) {
      case BOOL:
        return Reflected.call(in, "readBool");
      case BYTE:
        return Reflected.call(in, "readByte");
      case DOUBLE:
        return Reflected.call(in, "readDouble");
      case I16:
        return Reflected.call(in, "readI16");
      case I32:
        return Reflected.call(in, "readI32");
      case I64:
        return Reflected.call(in, "readI64");
      case TEXT:
        ByteBuffer buffer = (ByteBuffer) Reflected.call(in, "readBinary");
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
      case STRUCT:
        return fields(depth);
      case LIST:
        Object list = Reflected.call(in, "readListBegin");
        List<Object> all = values((Integer) part(list, "size"), depth, (Byte) part(list, "elemType"));
        Reflected.call(in, "readListEnd");
        return all;
      case SET:
        Object set = Reflected.call(in, "readSetBegin");
        List<Object> members = values((Integer) part(set, "size"), depth, (Byte) part(set, "elemType"));
        Reflected.call(in, "readSetEnd");
        return members;
      case MAP:
        Object map = Reflected.call(in, "readMapBegin");
        byte key = (Byte) part(map, "keyType");
        List<Object> pairs = values((Integer) part(map, "size"), depth, key, (Byte) part(map, "valueType"));
        Reflected.call(in, "readMapEnd");
        return pairs;
      default:
        throw new ReflectiveOperationException("the metastore's answer has a field of the unknown type " + type);
    }
  }

  /** The elements of a list or set, or the keys and values of a map, alternating. */
  private List<Object> values(int size, int depth, byte... types) throws ReflectiveOperationException {
    List<Object> all = new ArrayList<>();
    for (int at = 0; at < size; at++) {
      for (byte type : types) {
        all.add(value(type, depth + 1));
      }
    }
    return all;
  }

  /** The text of a field. */
  static String text(Object field) {
    return field instanceof byte[] ? new String((byte[]) field, StandardCharsets.UTF_8) : String.valueOf(field);
  }
}
